// Trains models::Forecaster on the monthly numbers of sunspots, as a graph or eagerly.
#include "ebb/examples/common/harness.h"

int main(int argc, char** argv) {
  return examples::run_program(
      argc, argv,
      {.name = "train_lstm", .purpose = "Trains an LSTM to forecast a series.", .model = "lstm"},
      examples::train_and_report);
}
