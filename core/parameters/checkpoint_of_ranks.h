// Checkpoints that the ranks of a world write together.
#pragma once
#include <optional>
#include <span>
#include <string>

#include "ebb/core/device/world.h"
#include "ebb/core/files/safetensors.h"
#include "ebb/core/kernels/collective.h"

namespace ebb::detail {

// A value of a checkpoint: where the ranks of a world have shares of it, this rank's.
struct SavedValue : safetensors::View {
  std::optional<Shape> whole = {};  // of which spec.shape is the share
};

// Collects the ranks' shares of a value, which is described whole, in its values.
Collective collecting(const safetensors::View& value);

// Rank 0 writes `values` to a file; or where there are shares, each rank its part of the whole
// tensors, and rank 0 an index. Returns when all is there. No two checkpoints have a part of one
// name, so that the last one stays whole until the next is; its parts go then. Takes host memory
// for the tensors that this rank makes whole. Where a rank cannot write, all throw FileError.
void write_with_ranks(const distributed::World& world, const std::string& file,
                      std::span<const SavedValue> values, const safetensors::Metadata& metadata);

}  // namespace ebb::detail
