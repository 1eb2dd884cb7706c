#pragma once
#include <functional>
#include <string>

namespace examples {

// The exit code of a main: what body returns, or with one line on the standard error that says why
// 1 (ran and failed, or what it printed could not be written) or 2 (bad arguments).
int run_main(const std::string& program, const std::function<int()>& body);

}  // namespace examples
