// The programs that learn something reach what their pages promise, in the memory they predict.
#include <regex>

#include "ebb/tests/catch.h"
#include "ebb/tests/examples/run.h"

namespace ebb::tests {
namespace {

struct Learned {
  std::string output;
  std::smatch figures;

  double figure(std::size_t i) const { return std::stod(figures[i]); }
};

// Runs a program, whose peak is what it predicts, and finds the figures of its line.
std::unique_ptr<Learned> learn(const std::string& program, const std::string& line) {
  const Ended ended = run(program + " cpu");
  INFO(program << " printed\n" << ended.output);
  REQUIRE(ended.code == 0);
  auto learned = std::make_unique<Learned>();
  learned->output = ended.output;
  std::smatch peak;
  REQUIRE(std::regex_search(learned->output, peak,
                            std::regex("peak: ([0-9,]+) predicted, ([0-9,]+) measured\n")));
  CHECK(peak[1] == peak[2]);
  REQUIRE(std::regex_search(learned->output, learned->figures, std::regex(line)));
  return learned;
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

}  // namespace ebb::tests
