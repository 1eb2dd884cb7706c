// The families of facts. Each throws Error where it cannot be told; the others go on.
#pragma once
#include "ebb/tests/gpu_check/facts/gpu.h"

namespace ebb::facts {

// What the GPU is, and which libraries start on it.
Json device(Gpu& gpu);
Json libraries(Gpu& gpu);
// Whether the address ranges are granted that the allocator asks for.
Json addresses(Gpu& gpu);
// What a page costs to create, map, give access and unmap, by how many there are already.
Json pages(Gpu& gpu);
// What cuBLASLt chooses for each product of the examples.
Json products(Gpu& gpu);
// Whether max(0, NaN) is NaN behind a product.
Json relu_of_nan(Gpu& gpu);
// What cuDNN asks for each LSTM of the examples, beside what memory rules declare.
Json lstm_workspaces(Gpu& gpu);
// Whether an LSTM can be captured, and computes the same then.
Json lstm_capture(Gpu& gpu);
// A program of 1,000 launches, captured and replayed.
Json program(Gpu& gpu);
// The least that a launch and a copy take.
Json floors(Gpu& gpu);

}  // namespace ebb::facts
