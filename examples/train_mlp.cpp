// Trains models::Classifier on handwritten digits, as a graph or eagerly.
#include "ebb/examples/common/harness.h"

int main(int argc, char** argv) {
  return examples::run_program(
      argc, argv,
      {.name = "train_mlp", .purpose = "Trains an MLP to tell classes apart.", .model = "mlp"},
      examples::train_and_report);
}
