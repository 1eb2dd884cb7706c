#pragma once
#include <cuda_runtime.h>

#include <cstdint>

namespace ebb::cuda {

// The sum of term(i) for i = first, first + step, .. below end: runs of 8 terms in their own type,
// added up in double.
template <class Term>
__device__ inline double strided_sum(std::int64_t first, std::int64_t end, std::int64_t step,
                                     const Term& term) {
  constexpr int kRun = 8;
  using T = decltype(term(first));
  double total = 0;
  std::int64_t i = first;
  for (; i + (kRun - 1) * step < end; i += kRun * step) {
    T run = term(i);
    for (int k = 1; k < kRun; ++k) run += term(i + k * step);
    total += static_cast<double>(run);
  }
  T rest = 0;
  for (; i < end; i += step) rest += term(i);
  return total + static_cast<double>(rest);
}

}  // namespace ebb::cuda
