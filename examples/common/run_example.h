// The mains of the small programs.
#pragma once
#include <functional>
#include <type_traits>

#include "ebb/core/device/device.h"
#include "ebb/examples/common/arguments.h"

namespace examples {

// What a program that trains is told.
struct Arguments : Files {
  ebb::Device device = ebb::Device::cpu();
};

// Runs body(device), on the CPU unless an argument names another device, with --device before it or
// without, as run_main() does. On a simulated device it ends well where it comes to need a value:
// by then it has told what there is to tell.
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

// The same of a body that trains, with --save and --resume besides; not on a simulated device.
int train_example(int argc, const char* const* argv, const char* purpose,
                  const std::function<void(const Arguments&)>& body);

}  // namespace examples
