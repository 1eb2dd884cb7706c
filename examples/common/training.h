// The training loops, one per mode.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "ebb/core/memory/marks.h"
#include "ebb/examples/common/problem.h"
#include "ebb/examples/common/progress.h"

namespace examples {

struct Epoch {
  std::optional<double> loss;    // the mean over its samples; none on a simulated device
  std::optional<double> metric;  // on what was held out; likewise
  double seconds = 0;            // of training
};

// What a session's pool had to say.
struct SessionFigures {
  std::size_t planned_peak_bytes = 0;
  std::size_t peak_bytes = 0;
  std::size_t reserved_after_close_bytes = 0;
};

struct Training {
  std::int64_t parameters = 0;
  std::vector<Epoch> epochs;
  double steps_per_second = 0;
  std::optional<SessionFigures> session;  // in graph mode
};

// The moments that both mark.
inline constexpr const char* kBuilt = "after build";
inline constexpr const char* kEpoch = "after an epoch";
inline constexpr const char* kTrained = "after training";

// Train on `here`, which is the device of the options or its twin. Everything is given back before
// they return.
Training train_eagerly(const Problem& problem, const Options& options, const ebb::Device& here,
                       ebb::memory::Marks& mark, Progress& progress);
Training train_as_graph(const Problem& problem, const Options& options, const ebb::Device& here,
                        ebb::memory::Marks& mark, Progress& progress);

}  // namespace examples
