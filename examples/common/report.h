#pragma once
#include "ebb/examples/common/harness.h"

namespace examples {

// The bodies of train_lstm and train_mlp, and of compare_memory: they print figures and write those
// that --json asks for. Throw Error where a training went past the capacity of the simulated device
// it ran on, once everything is told.
void train_and_report(const Options& options);
void compare_and_report(const Options& options);

}  // namespace examples
