#pragma once
#include <cuda_runtime.h>

#include <cstdint>

namespace ebb::cuda {

// Divides a number below 2^63 by a divisor known at launch, without a division instruction: 64-bit
// divisions take registers that kernels of many sums do not have. walk.h has the same for 32 bits.
class AnyDivider {
 public:
  AnyDivider() = default;
  explicit AnyDivider(std::int64_t divisor) noexcept
      : divisor_(static_cast<std::uint64_t>(divisor)) {
    while (shift_ < 63 && (std::uint64_t{1} << shift_) < divisor_) ++shift_;
    const std::uint64_t rest = (std::uint64_t{1} << shift_) - divisor_;
    __extension__ typedef unsigned __int128 Wide;
    multiplier_ = static_cast<std::uint64_t>((Wide{rest} << 64) / divisor_ + 1);
  }
  // Returns the quotient; n becomes the remainder.
  __device__ std::int64_t divide(std::int64_t& n) const {
    const auto number = static_cast<std::uint64_t>(n);
    const std::uint64_t quotient = (__umul64hi(number, multiplier_) + number) >> shift_;
    n = static_cast<std::int64_t>(number - quotient * divisor_);
    return static_cast<std::int64_t>(quotient);
  }

 private:
  std::uint64_t divisor_ = 1, multiplier_ = 1;
  unsigned shift_ = 0;
};

}  // namespace ebb::cuda
