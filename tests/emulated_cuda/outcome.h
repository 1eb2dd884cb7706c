// The result of running work, and a source of random numbers.
#pragma once
#include <cstdint>
#include <random>
#include <string>

#include <cuda_runtime_api.h>

namespace ebb::emulated {

struct Outcome {
  cudaError_t code = cudaSuccess;
  std::string text = {};
  bool ok() const noexcept { return code == cudaSuccess; }
};

class Random : public std::mt19937_64 {
 public:
  using std::mt19937_64::mt19937_64;
  std::uint64_t below(std::uint64_t n) { return (*this)() % n; }
};

}  // namespace ebb::emulated
