#pragma once
#include <functional>

#include "ebb/examples/common/options.h"

namespace examples {

// The main of a program with options: 0, or what run_main() says.
int run_program(int argc, const char* const* argv, const Program& program,
                const std::function<void(const Options&)>& body);

// The body of train_lstm and train_mlp.
void train_and_report(const Options& options);
// The body of compare_memory.
void compare_and_report(const Options& options);

}  // namespace examples
