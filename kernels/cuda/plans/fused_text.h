// The text of a kernel that runs a chain of pointwise operators, in CUDA C++.
#pragma once
#include <string>
#include <vector>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/fused.h"

namespace ebb::cuda {

// A kernel `fused` with a parameter FusedArguments (kernels/cuda/fused_kernel.h), and the numbers
// that it reads there. Equal texts are equal kernels.
struct FusedText {
  std::string text;
  std::vector<double> numbers;
};

// The headers that texts include, by name; kernels_cuda.cmake makes them part of the library.
extern const int kHeaderCount;
extern const char* const kHeaderNames[];
extern const char* const kHeaderTexts[];

FusedText fused_text(const FusedChain& chain, std::span<const Spec> inputs, const Spec& out);

// The text, and the question that a prepare rule got.
struct FusedQuery {
  const MemoryQuery& query;
  FusedText source;
};
// The CUDA part's: compiles the text.
detail::Ref<Prepared> compile_fused(const FusedQuery& query);

}  // namespace ebb::cuda
