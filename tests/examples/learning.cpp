// The programs that learn reach the results that their pages promise, in the predicted memory, also
// when resumed.
#include <atomic>
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <thread>

#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/examples/run.h"

namespace ebb::tests {
namespace {

const std::string kPeak = "peak: ([0-9,]+) predicted, ([0-9,]+) measured\n";

// A whole run, and links to all the files that it saved. Each save replaces the file before it, so
// a link keeps that one.
struct Whole {
  explicit Whole(const std::string& program) {
    const std::string file = folder.path("run");
    std::atomic<bool> ended = false;
    Ended run_to_its_end{-1, ""};
    std::thread runs([&] {
      run_to_its_end = run(program + " cpu --save " + file);
      ended = true;
    });
    for (bool is_last = false; !is_last;) {
      is_last = ended;
      std::error_code error;
      const bool is_new = std::filesystem::exists(file, error) &&
                          !(saved > 0 && std::filesystem::equivalent(file, at(0), error));
      // The link fails where the next save replaces the file meanwhile.
      if (is_new) std::filesystem::create_hard_link(file, at(-1), error);
      if (is_new && !error)
        ++saved;
      else if (!is_last)
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    runs.join();
    output = run_to_its_end.output;
    INFO(program << " printed\n" << output);
    REQUIRE(run_to_its_end.code == 0);
    REQUIRE(saved > 1);
  }
  // The file that was saved `before` saves before the last.
  std::string at(int before) const { return folder.path(std::to_string(saved - before)); }

  const TemporaryFolder folder;
  std::string output;
  int saved = 0;
};

const Whole& whole(const std::string& program) {  // runs it once
  static std::map<std::string, Whole> runs;
  return runs.try_emplace(program, program).first->second;
}

struct Learned {
  explicit Learned(const std::string& text) : output(text) {}
  std::string output;
  std::smatch figures;

  double figure(std::size_t i) const { return std::stod(figures[i]); }
};

// Runs a program, checks that its peak is the predicted one, and finds the figures in a line.
std::unique_ptr<Learned> learn(const std::string& program, const std::string& line) {
  auto learned = std::make_unique<Learned>(whole(program).output);
  INFO(program << " printed\n" << learned->output);
  std::smatch peak;
  REQUIRE(std::regex_search(learned->output, peak, std::regex(kPeak)));
  CHECK(peak[1] == peak[2]);
  REQUIRE(std::regex_search(learned->output, learned->figures, std::regex(line)));
  return learned;
}

// The final part of a program's output: its figures, and the text or drawing that it made.
std::string result_of(const std::string& output) {
  const std::size_t at = std::min(output.find("nats per image"), output.find("held out: "));
  return at == std::string::npos ? "nothing" : output.substr(at);
}

// Resumed after its last save but one, a program learns the same as without a break. Resumed after
// its last, it has nothing left to train.
void check_resumed(const std::string& program) {
  INFO(program << " learns as a whole\n" << whole(program).output);
  const std::string result = result_of(whole(program).output);
  const Ended resumed = run(program + " --resume " + whole(program).at(1));
  INFO("resumed\n" << resumed.output);
  CHECK(resumed.code == 0);
  CHECK(result_of(resumed.output) == result);
  std::smatch peak;
  REQUIRE(std::regex_search(resumed.output, peak, std::regex(kPeak)));
  CHECK(peak[1] == peak[2]);
  const Ended again = run(program + " --device=cpu --resume=" + whole(program).at(0));
  INFO("resumed again\n" << again.output);
  CHECK(again.code == 0);
  CHECK(result_of(again.output) == result);
  CHECK_FALSE(holds(again, "training"));
  CHECK_FALSE(holds(again, "epoch"));
  std::smatch loaded;  // a peak that is printed is of loading
  if (std::regex_search(again.output, loaded, std::regex(kPeak))) {
    CHECK(loaded[1] == loaded[2]);
    CHECK(loaded[1] != peak[1]);
  }
}

const std::string kFigure = "([0-9.]+)";

}  // namespace

TEST_CASE("the convolutional network reads 98.5 % of the digits it has not seen") {
  const auto network = learn("digits_cnn", "held out: " + kFigure + " % of 359 digits\n");
  CHECK(network->figure(1) >= 98.5);
  check_resumed("digits_cnn");
}

TEST_CASE("the autoencoder needs 6 nats less for a digit than independent pixels") {
  const auto model = learn("digits_vae", "held out: independent pixels " + kFigure +
                                             ", autoencoder at most " + kFigure + "\n");
  CHECK(model->figure(1) == Approx(25.12).margin(0.5));  // of all digits, computed elsewhere
  CHECK(model->figure(2) <= model->figure(1) - 6);
  check_resumed("digits_vae");
}

TEST_CASE("the forecaster of a year errs a tenth less than both who learn nothing") {
  const auto model = learn("forecast_year", "held out: last month " + kFigure + ", last cycle " +
                                                kFigure + ", LSTM " + kFigure + "\n");
  CHECK(model->figure(3) < 0.9 * model->figure(1));
  CHECK(model->figure(3) < 0.9 * model->figure(2));
  check_resumed("forecast_year");
}

TEST_CASE("the writers need fewer bits than the best n-gram", "[long]") {
  for (const std::string name : {"LSTM", "transformer"}) {
    const auto writer = learn(name == "LSTM" ? "text_lstm" : "text_transformer",
                              "held out: single characters " + kFigure + ", 5 in a row " + kFigure +
                                  ", " + name + " " + kFigure + "\n");
    CHECK(writer->figure(1) == 4.562);  // as computed elsewhere
    CHECK(writer->figure(2) == 2.203);
    CHECK(writer->figure(3) <= (name == "LSTM" ? 2.12 : 2.19));
    check_resumed(name == "LSTM" ? "text_lstm" : "text_transformer");
  }
}

}  // namespace ebb::tests
