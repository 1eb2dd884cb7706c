#pragma once
#include <functional>

#include "ebb/examples/common/options.h"

namespace examples {

// The main of a program: its exit code is 0, or with one line on the standard error that says why 1
// (ran and failed) or 2 (bad arguments).
int run_program(int argc, const char* const* argv, const Program& program,
                const std::function<void(const Options&)>& body);

// The body of train_lstm and train_mlp.
void train_and_report(const Options& options);
// The body of compare_memory.
void compare_and_report(const Options& options);

}  // namespace examples
