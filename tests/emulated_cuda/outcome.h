// The result of running work, and a source of random numbers.
#pragma once
#include <cstdint>
#include <string>

#include <cuda_runtime_api.h>

namespace ebb::emulated {

struct Outcome {
  cudaError_t code = cudaSuccess;
  std::string text = {};
  bool ok() const noexcept { return code == cudaSuccess; }
};

// splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed = 1) noexcept : state_(seed) {}
  std::uint64_t operator()() noexcept {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
  }
  std::uint64_t below(std::uint64_t n) noexcept { return (*this)() % n; }

  using result_type = std::uint64_t;  // a generator for std::shuffle
  static constexpr std::uint64_t min() noexcept { return 0; }
  static constexpr std::uint64_t max() noexcept { return ~std::uint64_t{0}; }

 private:
  std::uint64_t state_;
};

}  // namespace ebb::emulated
