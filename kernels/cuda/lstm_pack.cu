#include "ebb/kernels/cuda/lstm_pack.h"

#include "ebb/core/base/half.h"
#include "ebb/kernels/cuda/stream_memory.h"
#include "ebb/kernels/cuda/strided_copy.h"

namespace ebb::cuda {

template <class T>
Status pack_weights(cudaStream_t stream, const CudnnWeights& at, std::int64_t in,
                    std::int64_t hidden, const T* w, const T* r, const T* b, T* packed) noexcept {
  const std::size_t bias_bytes = static_cast<std::size_t>(4 * hidden) * sizeof(T);
  // cuDNN wants the transpose of [in, 4 hidden].
  EBB_TRY(swap_axes(stream, w, packed + at.w, in, 4 * hidden, 1));
  EBB_TRY(swap_axes(stream, r, packed + at.r, hidden, 4 * hidden, 1));
  EBB_TRY(copy(stream, packed + at.b, b, bias_bytes));
  return clear(stream, packed + at.second_b, bias_bytes);
}

template <class T>
Status unpack_weights(cudaStream_t stream, const CudnnWeights& at, std::int64_t in,
                      std::int64_t hidden, const T* packed, T* dw, T* dr, T* db) noexcept {
  if (dw != nullptr) EBB_TRY(swap_axes(stream, packed + at.w, dw, 4 * hidden, in, 1));
  if (dr != nullptr) EBB_TRY(swap_axes(stream, packed + at.r, dr, 4 * hidden, hidden, 1));
  return copy(stream, db, packed + at.b, static_cast<std::size_t>(4 * hidden) * sizeof(T));
}

template <class T>
Status swap_axes(cudaStream_t stream, const T* from, T* to, std::int64_t outer, std::int64_t inner,
                 std::int64_t width) noexcept {
  if (outer * inner * width == 0) return {};
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  StridedWalk walk(sizeof(T));
  walk.add(width, kSize);
  walk.add(outer, inner * width * kSize);
  walk.add(inner, width * kSize);
  return strided_copy(stream, from, to, walk);
}

#define EBB_LSTM_PACK(T)                                                                        \
  template Status pack_weights(cudaStream_t, const CudnnWeights&, std::int64_t, std::int64_t,   \
                               const T*, const T*, const T*, T*) noexcept;                      \
  template Status unpack_weights(cudaStream_t, const CudnnWeights&, std::int64_t, std::int64_t, \
                                 const T*, T*, T*, T*) noexcept;                                \
  template Status swap_axes(cudaStream_t, const T*, T*, std::int64_t, std::int64_t,             \
                            std::int64_t) noexcept;
EBB_LSTM_PACK(float)
EBB_LSTM_PACK(double)
EBB_LSTM_PACK(Float16)
EBB_LSTM_PACK(BFloat16)
#undef EBB_LSTM_PACK

}  // namespace ebb::cuda
