// The arguments that the programs share.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "ebb/core/device/device.h"
#include "ebb/examples/common/arguments.h"

namespace examples {

enum class Mode { graph, eager };

constexpr const char* name(Mode mode) noexcept { return mode == Mode::graph ? "graph" : "eager"; }

struct Options : Files {
  std::string model;  // "lstm" or "mlp"
  Mode mode = Mode::graph;
  ebb::Device device = ebb::Device::cpu();
  std::int64_t epochs = 0;
  std::int64_t batch = 64;
  std::int64_t accumulate = 1;  // micro-batches that a batch is cut into
  std::optional<std::size_t> memory_limit = {};
  std::int64_t hidden = 0;
  std::int64_t layers = 1;
  std::int64_t length = 48;  // values of the series that the LSTM sees
  std::uint64_t seed = 7;
  std::string data = {};
  std::string json = {};  // where the figures go; "": nowhere
  double learning_rate = 0;

  std::int64_t micro_batch() const noexcept { return batch / accumulate; }
};

// The defaults of "lstm" or "mlp".
Options defaults(const std::string& model);

struct Program {
  std::string name;
  std::string purpose;
  std::string model;      // "": the user chooses
  bool compares = false;  // runs both modes, so that none is chosen
};

// Throws BadArguments. Prints help and returns nothing where that was asked for.
std::optional<Options> parse(int argc, const char* const* argv, const Program& program);

}  // namespace examples
