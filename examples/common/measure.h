#pragma once
#include <nlohmann/json.hpp>
#include <string>

#include "ebb/core/memory/comparison.h"
#include "ebb/examples/common/training.h"

namespace examples {

// Trains in the mode of the options, for the comparison: on the twin of its device, then on the
// device. Returns what the second (on a simulated device, the only) training gave.
Training measure(ebb::memory::Comparison& comparison, const std::string& name,
                 const Problem& problem, const Options& options, bool prints_epochs);

// Throws Error where a training went past the capacity of the simulated device it ran on: on a real
// one it would have ended there.
void require_fit(const ebb::memory::Comparison& comparison);

// The figures of a training and of its measurement, as all programs write them.
nlohmann::ordered_json to_json(const Options& options, const Training& training,
                               const ebb::memory::Measurement& measurement);

// Throws FileError.
void write_json(const std::string& file, const nlohmann::ordered_json& json);

}  // namespace examples
