// The main of a program that is told a device and nothing else.
#pragma once
#include <functional>
#include <type_traits>

#include "ebb/core/device/device.h"

namespace examples {

// Runs body(device), on the CPU unless an argument names another device, with --device before it or
// without. Its exit code is what body returns; 1 with the reason on the standard error where that
// throws; 2 with a line for other arguments. --help prints what the program is for. On a simulated
// device it ends well where it comes to need a value: by then it has told what there is to tell.
int run_example(int argc, const char* const* argv, const char* purpose,
                const std::function<int(const ebb::Device&)>& body);

// The same of a body that returns nothing.
template <class Body>
requires std::is_void_v<std::invoke_result_t<Body, const ebb::Device&>>
int run_example(int argc, const char* const* argv, const char* purpose, const Body& body) {
  return run_example(argc, argv, purpose,
                     std::function<int(const ebb::Device&)>([&](const ebb::Device& device) {
                       body(device);
                       return 0;
                     }));
}

}  // namespace examples
