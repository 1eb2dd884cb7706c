#pragma once
#include "ebb/examples/common/harness.h"

namespace examples {

// The bodies of train_lstm and train_mlp, and of compare_memory. They print figures and write the
// file that --json names. Throw Error, after all output, where a training went past the capacity of
// its simulated device.
void train_and_report(const Options& options);
void compare_and_report(const Options& options);

}  // namespace examples
