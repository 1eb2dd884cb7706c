#pragma once
#include <cstddef>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

#include "ebb/allocator/limit.h"
#include "ebb/allocator/statistics.h"
#include "ebb/core/device/device.h"
#include "ebb/core/device/simulation.h"
#include "ebb/core/device/world.h"

namespace ebb::memory {

// Predicted memory of a program.
struct Prediction {
  std::size_t peak_bytes = 0;           // most allocated at once
  ByCategory by_category{};             // of peak_bytes, when it was first reached
  std::string peak_node;                // request that reached it: "matmul (model.cpp:12)"
  std::vector<Holder> holders;          // of peak_bytes, largest first, a few
  std::size_t reserved_peak_bytes = 0;  // most reserved, on a device that held nothing before
  // The smallest limit, in whole pages, at which the program runs where nothing else is held, while
  // one page less is refused. Of a program that does not ask how much memory there is: it does not
  // watch, catch OutOfMemory or preallocate without a limit.
  std::size_t least_limit_bytes = 0;
  std::size_t held_bytes = 0;      // still allocated after the program returned
  std::uint64_t sent_bytes = 0;    // to other ranks, by collectives on the device
  std::size_t capacity_bytes = 0;  // room on the device when its twin was made
  bool fits =
      true;  // whether that room was enough after everything that can give way did; free parts of
             // pages that live blocks use count as lost, though the device may find room there
  // Values that the program read, which PredictOptions gave: by line, in the order of the first
  // reads. A program that branches on them may take another way in earnest.
  bool reads_values = false;
  std::vector<ReadLine> reads;
};

struct PredictOptions {
  // Values for reads on the twin: item, to_vector, metrics, printing, Marks::step,
  // DetectNan (which reads one value of each result). A number for all, or a function:
  //   {.values = [](const memory::ValueRead& read) { return read.line == 12 ? 1.0 : 0.5; }}
  // Without it reading throws SimulatedRead.
  GivenValues values = {};
  // The rank that the program is predicted for, byte for byte: World() gives it within the program,
  // and throws Error for other options. Without it World() opens the job's, as it does elsewhere.
  //   {.world = distributed::World::simulated(3, 8)}
  std::optional<distributed::World> world = {};
};

// The figures in lines, for people; without a last line break.
std::ostream& operator<<(std::ostream& out, const Prediction& prediction);

// Runs `program` on a fresh simulated twin of `device` (with its profile and capacity, if it is
// simulated itself). Nothing real is touched and no values exist, but every byte is counted: the
// prediction is exact for memory that the program allocates on the device it is given. Captured
// tensors stay on their own devices. The calling thread's random state is restored afterwards.
//
// Parameters::save and Session::save on the twin check as in earnest and write nothing. The
// prediction remembers what they would have written, so that loading it finds names and shapes.
// Other files are opened, and only their headers are read.
//
// Throws the program's exceptions, and SimulatedRead if it reads a value that it was not given.
Prediction predict(const Device& device, const std::function<void(Device)>& program,
                   const PredictOptions& options = {});

}  // namespace ebb::memory

namespace ebb::distributed {

// Sharding as a means to keep to a budget: the first, in their order, with which `program` runs on
// the device within a limit of `budget` bytes, as memory::predict says of the rank that
// `options.world` names. Within the program World() is that rank with the sharding that is tried.
// Ranks differ, by rows and by a page or two: ask for each where that counts.
//
//   const auto fits = distributed::least_sharding(device, 6_GiB, train,
//                                                 {.world = distributed::World::simulated(0, 8)});
//
// A sharding with which the program throws is passed over. Where none is enough, throws Error that
// says what each takes; where the program throws with all of them, what it throws.
Sharding least_sharding(const Device& device, memory::Limit budget,
                        const std::function<void(Device)>& program,
                        const memory::PredictOptions& options, CallSite site = CallSite::here());

}  // namespace ebb::distributed
