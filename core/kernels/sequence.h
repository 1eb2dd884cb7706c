#pragma once
#include "ebb/core/kernels/index.h"

namespace ebb {

// A tensor seen as [batch, time, bytes].
struct Sequences {
  std::int64_t batch, time, bytes;

  explicit Sequences(const Spec& x) noexcept
      : batch(x.shape.dim(0)),
        time(x.shape.dim(1)),
        bytes(detail::product(x.shape, 2, x.shape.rank()) *
              static_cast<std::int64_t>(size_of(x.dtype))) {}
};

namespace cpu {
// out[b, t] = in[b, n - 1 - t] for t < n = lengths[b] (i64), in[b, t] from there on; any dtype.
// Where a length is outside [0, time]: missing_byte().
Status reverse_sequence(const KernelContext&);
}  // namespace cpu
}  // namespace ebb
