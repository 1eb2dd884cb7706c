#include "ebb/examples/common/run_example.h"

#include <cstdio>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

#include "ebb/core/base/error.h"

namespace examples {

namespace {

int fail(const std::string& program, const std::string& why, int code) {
  std::fflush(stdout);
  std::fprintf(stderr, "%s: %s\n", program.c_str(), why.c_str());
  return code;
}

int refuse(const std::string& program, const std::string& why) {
  return fail(program, why + " (--help tells the arguments)", 2);
}

void print_help(const std::string& program, const char* purpose) {
  std::printf(
      "%s\n\nUsage: %s [--device] [DEVICE]\n\n"
      "DEVICE is cpu, as it is without one, cuda, cuda:N, or sim:PROFILE:SIZE, as in\n"
      "sim:h200:141GiB: a simulated device, which has no values but counts every byte.\n",
      purpose, program.c_str());
}

}  // namespace

int run_example(int argc, const char* const* argv, const char* purpose,
                const std::function<int(const ebb::Device&)>& body) {
  const std::string program = std::filesystem::path(argv[0]).filename();
  std::string_view name = "cpu";
  bool is_named = false;
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    if (argument == "--help" || argument == "-h") {
      print_help(program, purpose);
      return std::fflush(stdout) == 0
                 ? 0
                 : fail(program, "the standard output could not be written", 1);
    }
    if (argument == "--device") {
      if (++i == argc) return refuse(program, "--device takes one value");
      argument = argv[i];
    } else if (argument.starts_with("--device=")) {
      argument.remove_prefix(9);
    } else if (argument.starts_with("-")) {
      return refuse(program, "there is no argument " + std::string(argument));
    }
    if (is_named) return refuse(program, "takes one device, not " + std::string(argument) + " too");
    name = argument;
    is_named = true;
  }
  std::optional<ebb::Device> device;
  try {
    device = ebb::Device::parse(name);
  } catch (const std::exception& error) {
    return refuse(program, error.what());
  }
  try {
    const int code = body(*device);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return fail(program, "the standard output could not be written", 1);
    return code;
  } catch (const ebb::SimulatedRead& error) {
    if (!device->is_simulated()) return fail(program, error.what(), 1);
    std::printf("What follows needs values, which a simulated device does not have.\n");
    return 0;
  } catch (const std::exception& error) {
    return fail(program, error.what(), 1);
  }
}

}  // namespace examples
