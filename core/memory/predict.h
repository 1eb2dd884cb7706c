#pragma once
#include <cstddef>
#include <functional>
#include <iosfwd>

#include "ebb/allocator/statistics.h"
#include "ebb/core/device/device.h"

namespace ebb::memory {

// What a program takes, found out without taking it.
struct Prediction {
  std::size_t peak_bytes = 0;           // the most allocated at once
  ByCategory by_category{};             // of peak_bytes, when it was first reached
  std::size_t reserved_peak_bytes = 0;  // the most held from a device that held nothing before
  std::size_t held_bytes = 0;           // still allocated when the program had returned
  std::size_t capacity_bytes = 0;       // what the device had left when its twin was made
  bool fits =
      true;  // whether that was enough, all that can give way given way; free pieces of pages
             // that live blocks use do not count, where the device may find room for more
};

// The figures in lines, for people; without a last line break.
std::ostream& operator<<(std::ostream& out, const Prediction& prediction);

// Runs `program` on a fresh simulated twin of `device` (of its profile and capacity, if it is
// simulated itself). Nothing real is touched and no values exist, but every byte is counted as it
// would be: what the program allocates on the device it is given is predicted byte for byte. What
// it captures from outside stays where it is. The calling thread's random state is afterwards what
// it was.
//
// Throws what the program throws; SimulatedRead where it reads a value.
Prediction predict(const Device& device, const std::function<void(Device)>& program);

}  // namespace ebb::memory
