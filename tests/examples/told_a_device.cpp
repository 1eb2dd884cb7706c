// The programs that are told a device and nothing else: help, other arguments, simulated devices
// and GPUs.
#include <filesystem>
#include <sstream>
#include <vector>

#include "ebb/tests/catch.h"
#include "ebb/tests/examples/run.h"
#include "ebb/tests/source_folder.h"

namespace ebb::tests {
namespace {

const std::vector<std::string> kTold = {"adaptive_batch",
                                        "close_and_resume",
                                        "custom_operator",
                                        "digits_cnn",
                                        "digits_vae",
                                        "forecast_year",
                                        "freed_by_scope",
                                        "gradient_accumulation",
                                        "lend_the_gpu",
                                        "memory_limit",
                                        "text_lstm",
                                        "session_releases_memory",
                                        "survive_out_of_memory",
                                        "two_sessions",
                                        "who_holds_my_memory",
                                        "text_transformer"};

}  // namespace

TEST_CASE("a program that is told a device tells so, and refuses what is none") {
  std::size_t programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_folder() + "/examples"))
    programs += entry.path().extension() == ".cpp";
  CHECK(programs == kTold.size() + 3);  // and those with options
  for (const std::string& program : kTold) {
    INFO(program);
    for (const char* argument : {" --help", " cpu -h"}) {
      const Ended help = run(program + argument);
      CHECK(help.code == 0);
      CHECK(holds(help, "Usage: " + program + " [--device] [DEVICE]"));
      std::istringstream lines(help.output);
      for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
    }
    for (const auto& [arguments, why] :
         {std::pair{" --bogus", "there is no argument --bogus"},
          std::pair{" --device", "--device takes one value"},
          std::pair{" --device gpu", "unknown device 'gpu'"},
          std::pair{" --device=sim:cpu", "sim:PROFILE:SIZE"}, std::pair{" ''", "unknown device ''"},
          std::pair{" cpu cpu", "takes one device, not cpu too"}}) {
      const Ended ended = run(program + arguments);
      INFO(ended.output);
      CHECK(ended.code == 2);
      CHECK(ended.output.starts_with(program + ": "));
      CHECK(holds(ended, why));
      CHECK(is_one_line(ended));
    }
  }
  const Ended unwritten = run("two_sessions --device cpu", "/dev/full");
  CHECK(unwritten.code == 1);
  CHECK(holds(unwritten, "could not be written"));
}

TEST_CASE("a program that is told a simulated device ends well with what can be told of it") {
  for (const std::string& program : kTold) {
    const Ended ended = run(program + " --device sim:cpu:8GiB");
    INFO(program << " printed\n" << ended.output);
    CHECK(ended.code == 0);
    for (const char* learner :
         {"digits_cnn", "digits_vae", "forecast_year", "text_lstm", "text_transformer"})
      if (program == learner) CHECK(holds(ended, " predicted"));
  }
  CHECK(holds(run("two_sessions --device=sim:cpu:8GiB"),
              "both are closed                       0 B"));
  CHECK(holds(run("lend_the_gpu sim:cpu:8GiB"), "a guest, at work                     22.0 MiB"));
  CHECK(holds(run("gradient_accumulation sim:h200:1GiB"), "64 parts of   16: "));
  CHECK(holds(run("survive_out_of_memory sim:cpu:8GiB"),
              "refused step: 3,282,944, after: 3,282,944"));
}

TEST_CASE("a program that is told a GPU runs on it") {
  const std::string gpu = "EBB_CUDA_PART=" EBB_EMULATED_PART " EBB_EMULATED_PAGE=4096 ";
  for (const char* program : {"two_sessions cuda", "lend_the_gpu --device cuda",
                              "survive_out_of_memory --device=cuda:0", "close_and_resume cuda"}) {
    const Ended ended = run(program, "&1", gpu);
    INFO(program << " printed\n" << ended.output);
    CHECK(ended.code == 0);
  }
  const Ended none = run("two_sessions cuda", "&1", "EBB_EMULATED_DRIVER=0 " + gpu);
  CHECK(none.code == 2);
  CHECK(holds(none, "this machine has no CUDA driver"));
  CHECK(is_one_line(none));
}

}  // namespace ebb::tests
