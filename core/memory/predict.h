#pragma once
#include <cstddef>
#include <functional>
#include <iosfwd>

#include "ebb/allocator/statistics.h"
#include "ebb/core/device/device.h"

namespace ebb::memory {

// Predicted memory of a program.
struct Prediction {
  std::size_t peak_bytes = 0;           // most allocated at once
  ByCategory by_category{};             // of peak_bytes, when it was first reached
  std::size_t reserved_peak_bytes = 0;  // most reserved, on a device that held nothing before
  std::size_t held_bytes = 0;           // still allocated after the program returned
  std::size_t capacity_bytes = 0;       // room on the device when its twin was made
  bool fits =
      true;  // whether that room was enough after everything that can give way did; free parts of
             // pages that live blocks use count as lost, though the device may find room there
};

// The figures in lines, for people; without a last line break.
std::ostream& operator<<(std::ostream& out, const Prediction& prediction);

// Runs `program` on a fresh simulated twin of `device` (with its profile and capacity, if it is
// simulated itself). Nothing real is touched and no values exist, but every byte is counted: the
// prediction is exact for memory that the program allocates on the device it is given. Captured
// tensors stay on their own devices. The calling thread's random state is restored afterwards.
//
// Throws the program's exceptions, and SimulatedRead if it reads a value.
Prediction predict(const Device& device, const std::function<void(Device)>& program);

}  // namespace ebb::memory
