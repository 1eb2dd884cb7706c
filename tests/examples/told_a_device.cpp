// The small programs that take a device as argument: help, other arguments, simulated devices,
// GPUs.
#include <algorithm>
#include <filesystem>
#include <sstream>
#include <vector>

#include "ebb/core/tensor/tensor.h"
#include "ebb/examples/common/harness.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/examples/run.h"
#include "ebb/tests/source_folder.h"

namespace ebb::tests {
namespace {

const std::vector<std::string> kLearners = {"digits_cnn", "digits_vae", "forecast_year",
                                            "text_lstm", "text_transformer"};
const std::vector<std::string> kOthers = {"adaptive_batch",
                                          "close_and_resume",
                                          "custom_operator",
                                          "data_parallel",
                                          "fit_a_budget",
                                          "freed_by_scope",
                                          "lend_the_gpu",
                                          "make_it_fit",
                                          "memory_limit",
                                          "plan_cluster",
                                          "session_releases_memory",
                                          "survive_out_of_memory",
                                          "torch_bert",
                                          "torch_gpt2",
                                          "torch_resnet",
                                          "two_sessions",
                                          "who_holds_my_memory"};

std::vector<std::string> all() {
  std::vector<std::string> programs = kLearners;
  programs.insert(programs.end(), kOthers.begin(), kOthers.end());
  return programs;
}

bool is_learner(const std::string& program) {
  return std::ranges::find(kLearners, program) != kLearners.end();
}

}  // namespace

TEST_CASE("a program that is told a device tells so, and refuses what is none") {
  std::size_t programs = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source_folder() + "/examples"))
    programs += entry.path().extension() == ".cpp";
  CHECK(programs == all().size() + 3);  // and those with options
  for (const std::string& program : all()) {
    INFO(program);
    for (const char* argument : {" --help", " cpu -h"}) {
      const Ended help = run(program + argument);
      CHECK(help.code == 0);
      CHECK(holds(help, "Usage: " + program + " [OPTIONS] [DEVICE]"));
      CHECK(holds(help, "--device DEVICE"));
      CHECK(holds(help, "--resume FILE") == is_learner(program));
      std::istringstream lines(help.output);
      for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
    }
    for (const auto& [arguments, why] :
         {std::pair{" --bogus", "not expected: --bogus"},
          std::pair{" --device", "--device takes one value"},
          std::pair{" --device gpu", "unknown device 'gpu'"},
          std::pair{" --device=sim:cpu", "sim:PROFILE:SIZE"}, std::pair{" ''", "unknown device ''"},
          std::pair{" cpu cpu", "not expected: cpu"},
          std::pair{" cpu --device cpu", "takes one device, not two"}}) {
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

TEST_CASE("a program that learns refuses files that it cannot save to or go on from") {
  for (const std::string& program : kLearners)
    for (const auto& [arguments, why] :
         {std::pair{" --save", "--save takes one value"},
          std::pair{" --save=", "--save takes one value"},
          std::pair{" --save ''", "--save: takes a file's name, not ''"},
          std::pair{" --resume ''", "--resume: takes a file's name, not ''"},
          std::pair{" --save /dev/full", "--save /dev/full: that is no regular file"},
          std::pair{" --resume .", "--resume .: that is a folder"},
          std::pair{" --save nowhere/run", "--save nowhere/run: there is no such folder"},
          std::pair{" --save .", "--save .: that is a folder"},
          std::pair{" --resume nowhere", "--resume nowhere: there is no such file"},
          std::pair{" --resume 'no\nwhere'", "--resume no"},
          std::pair{" sim:cpu:1GiB --save run", "--save: on a simulated device"},
          std::pair{" sim:cpu:1GiB --resume " EBB_PROGRAMS "/two_sessions",
                    "--resume: on a sim"}}) {
      const Ended ended = run(program + arguments);
      INFO(program << " printed\n" << ended.output);
      CHECK(ended.code == 2);
      CHECK(holds(ended, why));
      CHECK(is_one_line(ended));
    }
  // A file of another format is refused in one line.
  const Ended other = run("forecast_year --resume " EBB_PROGRAMS "/two_sessions");
  INFO(other.output);
  CHECK(other.code == 1);
  CHECK(holds(other, "/two_sessions"));
  CHECK(is_one_line(other));
  CHECK(run("two_sessions --save run").code == 2);
}

TEST_CASE("a program that is told a simulated device ends well with what can be told of it") {
  for (const std::string& program : all()) {
    const Ended ended = run(program + " --device sim:cpu:8GiB");
    INFO(program << " printed\n" << ended.output);
    CHECK(ended.code == 0);
    if (is_learner(program)) CHECK(holds(ended, " predicted\n"));
  }
  CHECK(
      holds(run("close_and_resume sim:cpu:8GiB"), "What follows needs values, which a simulated"));
  CHECK(holds(run("two_sessions --device=sim:cpu:8GiB"),
              "both are closed                       0 B"));
  CHECK(holds(run("lend_the_gpu sim:cpu:8GiB"), "a guest, at work                     22.0 MiB"));
  CHECK(holds(run("make_it_fit sim:h200:1GiB"), "compiled, with a budget of 3 MiB  "));
  CHECK(holds(run("survive_out_of_memory sim:cpu:8GiB"),
              "refused step: 3,282,944, after: 3,282,944"));
}

TEST_CASE("a program on the CPU that wants a value of a simulated device has failed") {
  const char* const arguments[] = {"two_sessions", "cpu"};
  const auto reads = [](const Device& device) {
    static_cast<void>(Tensor::zeros({1}, DType::f32, device.twin()).item<float>());
  };
  CHECK(examples::run_example(2, arguments, "", reads) == 1);
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
