#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "ebb/core/base/shape.h"

namespace ebb {

// Samples that are read from anywhere when their batch is due, so there may be more than fit into
// memory.
//
//   SampleReader images{.size = count, .fields = {{DType::f32, {3, 64, 64}}, {DType::i32, {}}},
//                       .read = [&](std::int64_t sample, std::size_t field, void* values) { ... }};
//   DataLoader loader(images, {.batch = 64, .shuffle = Seed{1}});
struct SampleReader {
  std::int64_t size = 0;     // number of samples
  std::vector<Spec> fields;  // of one sample, without the leading axis
  // Writes a field of a sample: fields[field].bytes() of values on the host. Called by the loader's
  // thread of each pass under way, and by the caller's thread for a batch that was not made ahead.
  // An exception is thrown when its batch is due. It must make no tensors. Never called for a
  // simulated device.
  std::function<void(std::int64_t sample, std::size_t field, void* values)> read;
};

}  // namespace ebb
