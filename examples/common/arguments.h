// How every program takes its arguments.
#pragma once
#include <string>

#include "ebb/core/base/error.h"
#include "ebb/core/device/device.h"

namespace CLI {
class App;
}

namespace examples {

// Arguments that no program can run with: exit code 2.
class BadArguments : public ebb::Error {
 public:
  using Error::Error;
};

// Where a run is saved, and what it goes on from.
struct Files {
  std::string save = {};    // "": nowhere
  std::string resume = {};  // "": from the start
};

// Adds --save and --resume.
void add_files(CLI::App& app, Files& files, const char* save_help, const char* resume_help);

// Prints help and returns false where that was asked for. Throws BadArguments.
bool parse(CLI::App& app, int argc, const char* const* argv);

// These throw BadArguments: for a file that is not there, for one that cannot be written, and for
// files of a run on a simulated device.
void check_exists(const std::string& option, const std::string& file);
void check_output(const std::string& option, const std::string& file);
void check_files(const Files& files, const ebb::Device& device);

}  // namespace examples
