#include "ebb/examples/common/arguments.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

namespace examples {

namespace fs = std::filesystem;

void add_files(CLI::App& app, Files& files, const char* save_help, const char* resume_help) {
  // As a script's variable that is not set: the run would begin anew, or be lost.
  const CLI::Validator named(
      [](const std::string& file) {
        return file.empty() ? std::string("takes a file's name, not ''") : std::string();
      },
      "");
  const auto add = [&](const char* option, std::string& file, const char* help) {
    app.add_option(option, file, help)->check(named)->type_name("FILE");
  };
  add("--save", files.save, save_help);
  add("--resume", files.resume, resume_help);
}

bool parse(CLI::App& app, int argc, const char* const* argv) {
  app.get_formatter()->column_width(24);
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return false;
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string why = error.what();
    throw BadArguments(why.substr(0, why.find(':')) + " takes one value");
  } catch (const CLI::ParseError& error) {
    throw BadArguments(error.what());
  }
}

void check_exists(const std::string& option, const std::string& file) {
  if (fs::is_directory(file)) throw BadArguments(option + " " + file + ": that is a folder");
  if (!fs::is_regular_file(file))
    throw BadArguments(option + " " + file + ": there is no such file");
}

void check_output(const std::string& option, const std::string& file) {
  const fs::path folder = fs::path(file).parent_path();
  if (!folder.empty() && !fs::is_directory(folder))
    throw BadArguments(option + " " + file + ": there is no such folder");
  if (fs::is_directory(file)) throw BadArguments(option + " " + file + ": that is a folder");
}

void check_files(const Files& files, const ebb::Device& device) {
  if (!files.save.empty()) {
    check_output("--save", files.save);
    if (fs::exists(files.save) && !fs::is_regular_file(files.save))
      throw BadArguments("--save " + files.save + ": that is no regular file");
  }
  if (!files.resume.empty()) check_exists("--resume", files.resume);
  if (device.is_simulated() && !(files.save.empty() && files.resume.empty()))
    throw BadArguments(std::string(files.save.empty() ? "--resume" : "--save") +
                       ": on a simulated device there are no values");
}

}  // namespace examples
