// The programs that learn something reach what their pages promise, in the memory they predict;
// also one that was killed and goes on.
#include <filesystem>
#include <map>
#include <regex>

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/examples/run.h"

namespace ebb::tests {
namespace {

const std::string kPeak = "peak: ([0-9,]+) predicted, ([0-9,]+) measured\n";

// What a program prints that runs from its start to its end; it runs once.
const std::string& whole_output(const std::string& program) {
  static std::map<std::string, std::string> outputs;
  if (!outputs.contains(program)) {
    const Ended ended = run(program + " cpu");
    INFO(program << " printed\n" << ended.output);
    REQUIRE(ended.code == 0);
    outputs[program] = ended.output;
  }
  return outputs.at(program);
}

struct Learned {
  explicit Learned(const std::string& text) : output(text) {}
  std::string output;
  std::smatch figures;

  double figure(std::size_t i) const { return std::stod(figures[i]); }
};

// Runs a program, whose peak is what it predicts, and finds the figures of its line.
std::unique_ptr<Learned> learn(const std::string& program, const std::string& line) {
  auto learned = std::make_unique<Learned>(whole_output(program));
  INFO(program << " printed\n" << learned->output);
  std::smatch peak;
  REQUIRE(std::regex_search(learned->output, peak, std::regex(kPeak)));
  CHECK(peak[1] == peak[2]);
  REQUIRE(std::regex_search(learned->output, learned->figures, std::regex(line)));
  return learned;
}

// What a program prints once it has learned: its figures, and what it wrote or drew.
std::string result_of(const std::string& output) {
  const std::size_t at = std::min(output.find("nats per image"), output.find("held out: "));
  return at == std::string::npos ? "nothing" : output.substr(at);
}

// Runs a program that saves there and kills it as soon as it has, as a machine ends that fails.
void kill_once_saved(const std::string& program, const std::string& file) {
  const pid_t process = fork();
  if (process == 0) {
    const std::string path = std::string(EBB_PROGRAMS) + "/" + program;
    dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
    dup2(STDOUT_FILENO, STDERR_FILENO);
    execl(path.c_str(), path.c_str(), "--save", file.c_str(), nullptr);
    _exit(127);
  }
  REQUIRE(process > 0);
  int status = 0;
  while (!std::filesystem::exists(file) && waitpid(process, &status, WNOHANG) == 0) usleep(5000);
  kill(process, SIGKILL);
  waitpid(process, &status, 0);
  INFO(program << " ended with the status " << status);
  REQUIRE(WIFSIGNALED(status));
}

const std::string kFigure = "([0-9.]+)";

}  // namespace

TEST_CASE("the convolutional network reads 98.5 % of the digits it has not seen") {
  const auto network = learn("digits_cnn", "held out: " + kFigure + " % of 359 digits\n");
  CHECK(network->figure(1) >= 98.5);
}

TEST_CASE("the autoencoder needs 6 nats less for a digit than independent pixels") {
  const auto model = learn("digits_vae", "held out: independent pixels " + kFigure +
                                             ", autoencoder at most " + kFigure + "\n");
  CHECK(model->figure(1) == Approx(25.12).margin(0.5));  // of all digits, computed elsewhere
  CHECK(model->figure(2) <= model->figure(1) - 6);
}

TEST_CASE("the forecaster of a year errs a tenth less than both who learn nothing") {
  const auto model = learn("forecast_year", "held out: last month " + kFigure + ", last cycle " +
                                                kFigure + ", LSTM " + kFigure + "\n");
  CHECK(model->figure(3) < 0.9 * model->figure(1));
  CHECK(model->figure(3) < 0.9 * model->figure(2));
}

TEST_CASE("the writers need fewer bits than the best n-gram") {
  for (const std::string name : {"LSTM", "transformer"}) {
    const auto writer = learn(name == "LSTM" ? "text_lstm" : "text_transformer",
                              "held out: single characters " + kFigure + ", 5 in a row " + kFigure +
                                  ", " + name + " " + kFigure + "\n");
    CHECK(writer->figure(1) == 4.562);  // as computed elsewhere
    CHECK(writer->figure(2) == 2.203);
    CHECK(writer->figure(3) <= (name == "LSTM" ? 2.12 : 2.19));
  }
}

TEST_CASE("a program that is killed and resumed learns what one learns that is left alone") {
  const TemporaryFolder folder;
  for (const std::string program :
       {"digits_cnn", "digits_vae", "forecast_year", "text_lstm", "text_transformer"}) {
    const std::string file = folder.path(program);
    kill_once_saved(program, file);
    INFO(program << " learns as a whole\n" << whole_output(program));
    const Ended resumed = run(program + " --resume " + file + " --save " + file);
    INFO("resumed\n" << resumed.output);
    CHECK(resumed.code == 0);
    CHECK(result_of(resumed.output) == result_of(whole_output(program)));
    std::smatch peak;
    REQUIRE(std::regex_search(resumed.output, peak, std::regex(kPeak)));
    CHECK(peak[1] == peak[2]);
    // It is saved to its end: there is nothing left to train.
    const Ended again = run(program + " --device=cpu --resume=" + file);
    INFO("resumed again\n" << again.output);
    CHECK(again.code == 0);
    CHECK(result_of(again.output) == result_of(whole_output(program)));
    CHECK_FALSE(holds(again, "training"));
    CHECK_FALSE(holds(again, "epoch"));
    std::smatch loaded;  // where a peak is told, that of loading
    if (std::regex_search(again.output, loaded, std::regex(kPeak))) {
      CHECK(loaded[1] == loaded[2]);
      CHECK(loaded[1] != peak[1]);
    }
  }
}

}  // namespace ebb::tests
