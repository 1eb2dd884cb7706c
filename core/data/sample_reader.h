#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "ebb/core/base/shape.h"

namespace ebb {

// Samples that are read when a batch of them is due, from wherever they are: more of them than
// memory holds.
//
//   SampleReader images{.size = count, .fields = {{DType::f32, {3, 64, 64}}, {DType::i32, {}}},
//                       .read = [&](std::int64_t sample, std::size_t field, void* values) { ... }};
//   DataLoader loader(images, {.batch = 64, .shuffle = Seed{1}});
struct SampleReader {
  std::int64_t size = 0;     // how many there are
  std::vector<Spec> fields;  // of one sample each: without the leading axis
  // Writes a field of a sample, fields[field].bytes() of values on the host. It is called by a
  // thread of the loader's, at a time by one for each pass that is under way, and by the caller's
  // thread where a batch was not made ahead; what it throws is thrown when the batch is due. It
  // makes no tensors. Never called for a simulated device.
  std::function<void(std::int64_t sample, std::size_t field, void* values)> read;
};

}  // namespace ebb
