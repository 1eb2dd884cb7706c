#include "ebb/examples/common/run_example.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>

#include "ebb/core/base/error.h"
#include "ebb/examples/common/run_main.h"

namespace examples {

namespace {

std::optional<Arguments> read(const std::string& program, int argc, const char* const* argv,
                              const char* purpose, bool trains) {
  CLI::App app(purpose, program);
  Arguments arguments;
  std::string device = "cpu";
  const CLI::Option* const by_place = app.add_option("DEVICE", device, "The same")->type_name("");
  const CLI::Option* const by_name =
      app.add_option("--device", device,
                     "cpu (without it), cuda, cuda:N, or a simulated device,\n"
                     "sim:PROFILE:SIZE (sim:h200:141GiB), which has no\n"
                     "values but counts every byte")
          ->type_name("DEVICE");
  if (trains)
    add_files(app, arguments, "Save the run there, again and again",
              "Go on with the run saved there");
  if (!parse(app, argc, argv)) return {};
  if (by_place->count() + by_name->count() > 1) throw BadArguments("takes one device, not two");
  try {
    arguments.device = ebb::Device::parse(device);
  } catch (const ebb::Error& error) {
    throw BadArguments(error.what());
  }
  check_files(arguments, arguments.device);
  return arguments;
}

int run_small(int argc, const char* const* argv, const char* purpose, bool trains,
              const std::function<int(const Arguments&)>& body) {
  const std::string program = std::filesystem::path(argv[0]).filename();
  return run_main(program, [&] {
    const auto arguments = read(program, argc, argv, purpose, trains);
    if (!arguments) return 0;
    try {
      return body(*arguments);
    } catch (const ebb::SimulatedRead&) {
      if (!arguments->device.is_simulated()) throw;
      std::printf("What follows needs values, which a simulated device does not have.\n");
      return 0;
    }
  });
}

}  // namespace

int run_example(int argc, const char* const* argv, const char* purpose,
                const std::function<int(const ebb::Device&)>& body) {
  return run_small(argc, argv, purpose, false,
                   [&](const Arguments& arguments) { return body(arguments.device); });
}

int train_example(int argc, const char* const* argv, const char* purpose,
                  const std::function<void(const Arguments&)>& body) {
  return run_small(argc, argv, purpose, true, [&](const Arguments& arguments) {
    body(arguments);
    return 0;
  });
}

}  // namespace examples
