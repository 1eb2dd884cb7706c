// The families of facts. Each throws Error if it cannot be determined; the others go on.
#pragma once
#include "ebb/tests/gpu_check/facts/gpu.h"

namespace ebb::facts {

// The GPU's properties, and the libraries that start on it.
Json device(Gpu& gpu);
Json libraries(Gpu& gpu);
// Whether address ranges as large as the allocator's are granted.
Json addresses(Gpu& gpu);
// Time to create, map, give access to and unmap a page, by the number of pages already there.
Json pages(Gpu& gpu);
// cuBLASLt's choice for each product of the examples.
Json products(Gpu& gpu);
// cuDNN's plan for each convolution of the examples, beside the workspace that memory rules
// declare: whether it gives the same bits again and when captured, and its time beside ebb's own
// kernel's.
Json convolutions(Gpu& gpu);
Json attention(Gpu& gpu);
// Whether max(0, NaN) is NaN behind a product.
Json relu_of_nan(Gpu& gpu);
// Memory that cuDNN asks for in each LSTM of the examples, beside the bytes that memory rules
// declare.
Json lstm_workspaces(Gpu& gpu);
// CUB's workspace for sorts, beside the bytes that their memory rule declares.
Json sort_workspaces(Gpu& gpu);
// Whether an LSTM can be captured and then computes the same.
Json lstm_capture(Gpu& gpu);
// A program of 1,000 launches, captured and replayed.
Json program(Gpu& gpu);
// Least times of a launch and of a copy.
Json floors(Gpu& gpu);

}  // namespace ebb::facts
