// The programs as a user meets them: arguments, exit codes, errors in one line, JSON.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/examples/run.h"

using ebb::tests::contents_of;
using ebb::tests::Ended;
using ebb::tests::holds;
using ebb::tests::is_one_line;
using ebb::tests::run;
using ebb::tests::TemporaryFolder;

TEST_CASE("bad arguments end with 2 and one line that says why") {
  struct Case {
    const char* arguments;
    const char* why;
  };
  const Case cases[] = {
      {"train_lstm --bogus", "--bogus"},
      {"train_lstm --epochs none", "--epochs"},
      {"train_lstm --epochs 0", "takes a whole number from 1"},
      {"train_lstm --epochs", "--epochs takes one value"},
      {"train_lstm --batch 99999999999999999999", "--batch"},
      {"train_lstm --seed -1", "--seed"},
      {"train_lstm --memory-limit -5", "--memory-limit"},
      {"train_lstm --memory-limit 0MiB", "takes a size, as in 64MiB, not '0MiB'"},
      {"train_lstm --memory-limit 3X", "takes a size, as in 64MiB"},
      {"train_lstm --memory-limit 99999999999GiB", "takes a size"},
      {"train_lstm --report nowhere/page.html", "--report nowhere/page.html: there is no"},
      {"train_lstm --tensorboard /dev/null", "--tensorboard /dev/null: that is no folder"},
      {"train_lstm --data nowhere.csv", "nowhere.csv"},
      {"train_mlp --mode both", "--mode"},
      {"train_mlp --watch=8000", "--watch takes no value"},
      {"train_mlp --device cuda:no", "unknown device"},
      {"train_mlp --device ''", "unknown device ''"},
      {"train_mlp --device sim:cpu", "sim:PROFILE:SIZE"},
      {"train_mlp --accumulate many", "--accumulate: takes auto or a whole number"},
      {"train_mlp --accumulate 5", "does not divide"},
      {"train_mlp --json nowhere/figures.json", "nowhere"},
      {"train_mlp --save nowhere/run.safetensors", "--save nowhere/run.safetensors: there is no"},
      {"train_mlp --save .", "--save .: that is a folder"},
      {"train_lstm --resume nowhere", "--resume nowhere: there is no such file"},
      {"train_lstm --device sim:cpu:1GiB --save run", "--save: on a simulated device"},
      {"compare_memory --model cnn", "--model"},
      {"compare_memory --save run", "--save"},
      {"compare_memory --mode eager", "--mode"},
  };
  for (const Case& one : cases) {
    INFO(one.arguments);
    const Ended ended = run(one.arguments);
    INFO(ended.output);
    CHECK(ended.code == 2);
    CHECK(holds(ended, one.why));
    CHECK(is_one_line(ended));
  }
}

TEST_CASE("an operator of one's own recognises 97 of 100 digits it has not seen, in both modes") {
  const Ended ended = run("custom_operator");
  INFO(ended.output);
  CHECK(ended.code == 0);
  CHECK(holds(ended, "The gradient agrees with differences: yes"));
}

TEST_CASE("models with PyTorch's weights compute what they did there, in the memory predicted") {
  const std::regex peak("\npeak: ([0-9,]+) predicted, ([0-9,]+) measured\n");
  for (const char* program : {"torch_gpt2", "torch_bert", "torch_resnet"})
    for (const char* device : {" cpu", " cuda"}) {
      const Ended ended =
          run(std::string(program) + device, "&1", "EBB_CUDA_PART=" EBB_EMULATED_PART " ");
      INFO(program << device << " printed\n" << ended.output);
      CHECK(ended.code == 0);
      std::smatch found;
      REQUIRE(std::regex_search(ended.output, found, peak));
      CHECK(found[1] == found[2]);
    }
}

TEST_CASE("a run that fails ends with 1 and says why") {
  { std::ofstream("damaged.csv") << "month,sunspots\n1749-01,many\n"; }
  const Ended damaged = run("train_lstm --data damaged.csv");
  CHECK(damaged.code == 1);
  CHECK(holds(damaged, "damaged.csv"));
  CHECK(holds(damaged, "many"));
  for (const char* mode : {"graph", "eager", "compiled"}) {
    const Ended limited = run(std::string("train_lstm --memory-limit 1MiB --mode ") + mode);
    INFO(limited.output);
    CHECK(limited.code == 1);
    CHECK(holds(limited, "out of memory"));
    CHECK(holds(limited, " within a limit of 1."));
    CHECK(limited.output.ends_with(" MiB\n"));
  }
}

TEST_CASE("a training writes each step and each epoch's validation for TensorBoard") {
  const TemporaryFolder folder;
  const Ended ended = run("train_mlp --mode eager --epochs 2 --tensorboard " + folder.path("runs"));
  INFO(ended.output);
  if (holds(ended, "without protobuf")) return;
  CHECK(ended.code == 0);
  const auto file = std::filesystem::directory_iterator(folder.path("runs/eager"))->path();
  const std::string text = contents_of(file);
  const auto count = [&](const std::string& tag) {
    std::size_t times = 0;
    for (std::size_t at = 0; (at = text.find(tag, at)) != std::string::npos; ++at) ++times;
    return times;
  };
  for (const char* tag : {"loss/training", "memory/allocated", "memory/reserved", "memory/peak"})
    CHECK(count(tag) == 90);  // 1,438 digits in batches of 32
  CHECK(count("validation/accuracy") == 2);
}

TEST_CASE("what cannot be printed has not been run") {
  struct Case {
    const char* arguments;
    const char* standard_output;
  };
  for (const auto& [arguments, standard_output] :
       {Case{"train_mlp --epochs 1", "/dev/full"}, Case{"compare_memory --help", "/dev/full"},
        Case{"train_mlp --epochs 1 --json /dev/full", "/dev/null"}}) {
    INFO(arguments);
    const Ended ended = run(arguments, standard_output);
    INFO(ended.output);
    CHECK(ended.code == 1);
    CHECK(holds(ended, "could not be written"));
    CHECK(is_one_line(ended));
  }
}

TEST_CASE("a program that does not fit on a simulated device reports its figures and ends with 1") {
  for (const char* program : {"train_lstm", "compare_memory --accumulate 4"}) {
    const std::string arguments = std::string(program) + " --epochs 1 --device sim:cpu:";
    const Ended small = run(arguments + "4MiB --json figures.json");
    INFO(small.output);
    CHECK(small.code == 1);
    CHECK(holds(small, "does not fit on sim:cpu, which has 4.0 MiB"));
    CHECK(nlohmann::json::parse(std::ifstream("figures.json")).is_object());
    CHECK(run(arguments + "8GiB").code == 0);
  }
}

TEST_CASE("the CUDA part is loaded by programs that are to run on a GPU alone") {
  const std::string loads =
      "LD_DEBUG=files EBB_EMULATED_DRIVER=0 EBB_CUDA_PART=" EBB_EMULATED_PART " ";
  for (const char* arguments : {"train_mlp --help", "train_mlp --device cpu --epochs 1",
                                "compare_memory --model mlp --device sim:h200:1GiB --epochs 1"}) {
    INFO(arguments);
    const Ended ended = run(arguments, "&1", loads);
    CHECK(ended.code == 0);
    CHECK(!holds(ended, "file=" EBB_EMULATED_PART));
  }
  CHECK(holds(run("train_mlp --device cuda", "&1", loads), "file=" EBB_EMULATED_PART));
}

TEST_CASE("what keeps a program from its GPU is told in one line") {
  const std::string part = "EBB_CUDA_PART=" EBB_EMULATED_PART " ",
                    without = "EBB_EMULATED_DRIVER=0 ";
  std::filesystem::copy_file(EBB_EMULATED_PART, "part_at_hand.so",
                             std::filesystem::copy_options::overwrite_existing);
  for (const auto& [environment, why] :
       {std::pair{std::string("EBB_CUDA_PART=nowhere.so "), "EBB_CUDA_PART names nowhere.so"},
        std::pair{without + part, "this machine has no CUDA driver"},
        std::pair{without + "EBB_CUDA_PART=part_at_hand.so ", "this machine has no CUDA driver"},
        std::pair{part + "EBB_CUDNN_LIBRARY=/dev/null ",
                  "EBB_CUDNN_LIBRARY names /dev/null, which cannot"},
        std::pair{part + "EBB_CUBLASLT_LIBRARY=nowhere.so ",
                  "EBB_CUBLASLT_LIBRARY names nowhere.so, which"},
        std::pair{part + "EBB_CUDNN_LIBRARY=libm.so.6 ", "it lacks functions that ebb calls"}}) {
    const Ended ended = run("train_mlp --device cuda", "&1", environment);
    INFO(ended.output);
    CHECK(ended.code == 2);
    CHECK(holds(ended, why));
    CHECK(is_one_line(ended));
  }
  // An empty name is as none.
  CHECK(!holds(run("train_mlp --device cuda:7", "&1", "EBB_CUDA_PART= "), "EBB_CUDA_PART"));
  // Bad values of variables that do not concern the device are only reported; the program goes on.
  for (const auto& [variable, why] :
       {std::pair{"EBB_LOG=loud", "EBB_LOG is 'loud'; there is: trace, debug"},
        std::pair{"EBB_THREADS=many", "EBB_THREADS is 'many', which is no number"}}) {
    const Ended ended = run("train_mlp --epochs 1 --device cpu", "&1", variable + std::string(" "));
    INFO(ended.output);
    CHECK(ended.code == 0);
    CHECK(holds(ended, why));
  }
}

TEST_CASE("where there is a GPU that cannot be used, the CPU is, and why is said") {
  const std::string broken = "EBB_CUDA_PART=" EBB_EMULATED_PART " EBB_CUDA_MEMORY=none ";
  const Ended best = run("train_mlp --epochs 1", "&1", broken);
  INFO(best.output);
  CHECK(best.code == 0);
  CHECK(holds(best,
              "the CPU is used instead of CUDA: [cuda] cuda:0 is not available: "
              "EBB_CUDA_MEMORY is 'none'"));
}

TEST_CASE("the log says which way a GPU's LSTMs and products go") {
  const std::string gpu =
      "EBB_LOG=debug EBB_EMULATED_PAGE=4096 EBB_CUDA_PART=" EBB_EMULATED_PART " ";
  const std::string train =
      "train_lstm --epochs 1 --layers 1 --hidden 4 --batch 1024 --device cuda";
  const Ended found = run(train, "&1", gpu);
  INFO(found.output);
  CHECK(found.code == 0);
  CHECK(holds(found, "[lstm] of f32[1024, 48, 1], "));
  CHECK(holds(found, ": by cuDNN"));
  CHECK(holds(found, ": by cuBLASLt"));
  const Ended composed = run(train, "&1", gpu + "EBB_CUDA_LSTM=composed ");
  CHECK(holds(composed, ": composed of products"));
  CHECK(!holds(composed, ": by cuDNN"));
}

TEST_CASE("a CUDA part of another build is refused, and named") {
  std::ifstream file(EBB_EMULATED_PART, std::ios::binary);
  std::string part(std::istreambuf_iterator<char>(file), {});
  const std::string stamp = "ebb 0.";
  std::size_t found = 0;
  for (std::size_t at = part.find(stamp); at != std::string::npos; at = part.find(stamp, at + 1)) {
    part[at + 4] = '9';
    ++found;
  }
  REQUIRE(found > 0);
  std::ofstream("another_part.so", std::ios::binary) << part;
  const Ended ended = run("train_mlp --device cuda", "&1", "EBB_CUDA_PART=another_part.so ");
  INFO(ended.output);
  CHECK(ended.code == 2);
  CHECK(holds(ended, "/another_part.so belongs to another build of ebb (ebb 9."));
  CHECK(is_one_line(ended));
}

TEST_CASE("the bundled trainings run on a GPU, to the losses of the CPU, in the memory predicted") {
  const std::string gpu = "EBB_CUDA_PART=" EBB_EMULATED_PART " ";
  for (const char* program :
       {"train_mlp --epochs 2", "train_lstm --epochs 1 --hidden 16 --length 12"})
    for (const char* mode : {"graph", "eager", "compiled"}) {
      INFO(program << ", " << mode);
      const auto train = [&](const std::string& device, const std::string& environment) {
        const Ended ended = run(std::string(program) + " --mode " + mode + " --device " + device +
                                    " --json trained.json",
                                "/dev/null", environment);
        INFO(ended.output);
        REQUIRE(ended.code == 0);
        return nlohmann::json::parse(std::ifstream("trained.json"));
      };
      const nlohmann::json there = train("cuda", gpu), here = train("cpu", "");
      REQUIRE(there["epochs"].size() == here["epochs"].size());
      for (std::size_t i = 0; i < here["epochs"].size(); ++i)
        CHECK(there["epochs"][i]["loss"].get<double>() ==
              Approx(here["epochs"][i]["loss"].get<double>()).epsilon(1e-4));
      const nlohmann::json& memory = there["memory"];
      CHECK(memory["peak_bytes"] == memory["predicted_peak_bytes"]);
      CHECK(memory["after_close_bytes"] == 0);
    }
}

TEST_CASE("a run is saved after each epoch, and another program of the same arguments goes on") {
  REQUIRE(run("train_mlp --device cpu --epochs 2 --save run.safetensors", "/dev/null").code == 0);
  const std::string arguments = "train_mlp --device cpu --epochs 3 --resume run.safetensors";
  const Ended rest = run(arguments + " --mode eager");
  CHECK(rest.code == 0);
  CHECK(holds(rest, "epoch   3/3"));
  CHECK_FALSE(holds(rest, "epoch   2/3"));
  const Ended other = run(arguments + " --batch 16", "/dev/null");
  CHECK(other.code == 1);
  CHECK(holds(other, "run.safetensors was saved with a loader of 1438 samples in batches of 32"));
  CHECK(is_one_line(other));
  const Ended done = run("train_mlp --device cpu --epochs 2 --resume run.safetensors", "/dev/null");
  CHECK(done.code == 1);
  CHECK(holds(done, "has 2 epochs already"));
}

TEST_CASE(
    "Ctrl-C ends a run after the step, with 130 and the run saved; a program goes on from there") {
  const std::string program = "train_mlp --device cpu --batch 1 --epochs 500";
  const std::string command =
      std::string(EBB_PROGRAMS) + "/" + program +
      " --save cut.safetensors >cut.txt 2>&1 & pid=$!; "
      "until grep -q 'epoch *1/' cut.txt || ! kill -0 $pid; do sleep 0.05; done; "
      "rm -f cut.safetensors; kill -INT $pid; wait $pid";  // the file is then Ctrl-C's
  const std::regex ended(
      "train_mlp: ended by Ctrl-C after ([0-9]+) steps; the run is in cut.safetensors\n");
  const auto steps_of_cut_run = [&] {
    std::filesystem::remove("cut.txt");
    const int status = std::system(command.c_str());
    CHECK(WEXITSTATUS(status) == 130);
    const std::string text = contents_of("cut.txt");
    INFO(text);
    std::smatch found;
    REQUIRE(std::regex_search(text, found, ended));
    return std::stoi(found[1]);
  };
  // Within an epoch of 1,438 steps; that it ends at an epoch's last step happens once in 1,438.
  CHECK((steps_of_cut_run() % 1438 != 0 || steps_of_cut_run() % 1438 != 0));
  const Ended other = run("train_mlp --device cpu --batch 1 --epochs 1 --resume cut.safetensors");
  CHECK(holds(other, "cut.safetensors has "));  // epochs already
}

TEST_CASE("Ctrl-C before training says that nothing was trained") {
  const std::string command = "timeout --foreground --preserve-status -s INT 1 " +
                              std::string(EBB_PROGRAMS) +
                              "/train_lstm --device cpu --epochs 1000000 >cut.txt 2>&1";
  CHECK(WEXITSTATUS(std::system(command.c_str())) == 130);
  std::ifstream in("cut.txt");
  const std::string text(std::istreambuf_iterator<char>(in), {});
  CHECK(text.find("train_lstm: ended by Ctrl-C while it predicted the memory, before training\n") !=
        std::string::npos);
}

TEST_CASE("help is for people, 80 columns wide, and ends with 0") {
  for (const char* program : {"train_mlp", "train_lstm", "compare_memory"}) {
    const Ended help = run(std::string(program) + " --help");
    CHECK(help.code == 0);
    for (const char* option : {"--device", "--epochs", "--batch", "--accumulate", "--memory-limit",
                               "--hidden", "--layers", "--length", "--seed", "--data", "--json"})
      CHECK(holds(help, option));
    std::istringstream lines(help.output);
    for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
  }
}

TEST_CASE("the figures are written as JSON, alike on the device and on its twin") {
  const auto figures = [](const std::string& device) {
    const Ended ended =
        run("compare_memory --model lstm --epochs 1 --device " + device + " --json figures.json");
    INFO(ended.output);
    CHECK(ended.code == 0);
    CHECK_FALSE(holds(ended, "\x1b["));  // no colours, no progress in a pipe
    return nlohmann::json::parse(std::ifstream("figures.json"));
  };
  const nlohmann::json real = figures("cpu"), twin = figures("sim:cpu:8GiB");
  for (const char* mode : {"graph", "eager", "compiled"}) {
    const nlohmann::json& one = real.at(mode);
    CHECK(one.at("model") == "lstm");
    CHECK(one.at("mode") == mode);
    CHECK(one.at("device") == "cpu");
    CHECK(one.at("parameters") > 1000);
    CHECK(one.at("epochs").at(0).at("loss") > 0);
    CHECK(one.at("epochs").at(0).at("metric") > 0);
    CHECK(one.at("epochs").at(0).at("seconds") > 0);
    CHECK(one.at("steps_per_second") > 0);
    const nlohmann::json& memory = one.at("memory");
    CHECK(memory.at("predicted_peak_bytes") == memory.at("peak_bytes"));
    CHECK(memory.at("held_between_steps_bytes") <= memory.at("peak_bytes"));
    CHECK(memory.at("held_after_training_bytes") <= memory.at("peak_bytes"));
    CHECK(memory.at("after_close_bytes") == 0);
    CHECK(memory.contains("reserved_after_close_bytes"));
    CHECK(memory.at("reserved_after_release_bytes") == 0);
    std::size_t sum = 0;
    for (const auto& [category, bytes] : memory.at("by_category").items())
      sum += bytes.get<std::size_t>();
    CHECK(sum == memory.at("peak_bytes"));
    CHECK(one.at("memory").contains("session") == (std::string(mode) == "graph"));

    const nlohmann::json& other = twin.at(mode);
    CHECK(other.at("device") == "sim:cpu");
    CHECK(other.at("epochs").at(0).at("loss").is_null());
    CHECK(other.at("memory").at("predicted_peak_bytes") == memory.at("peak_bytes"));
  }
  const nlohmann::json& session = real.at("graph").at("memory").at("session");
  CHECK(session.at("planned_peak_bytes") == session.at("peak_bytes"));
  CHECK(session.at("reserved_after_close_bytes") == 0);
}

TEST_CASE("a program that goes on from a file has one of its own, and leaves none") {
  const TemporaryFolder folder;
  const std::string other =
      folder.file("ebb_close_and_resume.safetensors", "of another that runs meanwhile");
  const Ended ended = run("close_and_resume", "&1", "TMPDIR='" + folder.path("") + "' ");
  INFO(ended.output);
  CHECK(ended.code == 0);
  CHECK(folder.count() == 1);
  CHECK(contents_of(other) == "of another that runs meanwhile");
}
