// Trains one model as a graph and eagerly, and compares their memory.
#include "ebb/examples/common/harness.h"

int main(int argc, char** argv) {
  return examples::run_program(
      argc, argv,
      {.name = "compare_memory",
       .purpose = "Trains a model as a graph and eagerly, and lays their memory side by side.",
       .model = "",
       .compares = true},
      examples::compare_and_report);
}
