#include "ebb/optim/kernels/clip.h"

#include <algorithm>
#include <cmath>

#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/grid.h"
#include "ebb/kernels/cuda/group.h"

namespace ebb::cuda {
namespace {

constexpr std::int64_t kChunk = 4096;  // elements that a block works on at a time
static_assert(optim::kClipNumbers == 2 * kThreads);

// As many gradients as fit a kernel's arguments, which have 4 KiB in all.
struct Gradients {
  static constexpr int kRows = 128;

  const void* arrays[kRows];
  std::int64_t elements[kRows];
  std::int64_t first_chunk[kRows + 1] = {};  // of each gradient; the last is the number of chunks
  DType types[kRows];
  int rows = 0;

  void add(const Buffer& gradient) noexcept {
    arrays[rows] = gradient.data;
    elements[rows] = gradient.elements();
    types[rows] = gradient.spec.dtype;
    first_chunk[rows + 1] = first_chunk[rows] + divide_up(elements[rows], kChunk);
    ++rows;
  }
  // The gradient that the chunk belongs to: the last that does not begin after it.
  __device__ int row_of(std::int64_t chunk) const {
    int low = 0, high = rows;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first_chunk[middle] <= chunk ? low : high) = middle;
    }
    return low;
  }
};

template <class T>
__device__ double square_sum_of(const void* array, std::int64_t begin, std::int64_t end) {
  const T* const x = static_cast<const T*>(array);
  double sum = 0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    const double value = static_cast<double>(static_cast<Accumulate<T>>(x[i]));
    sum += value * value;
  }
  return sum;
}

__device__ double square_sum_of(DType type, const void* array, std::int64_t begin,
                                std::int64_t end) {
  switch (type) {
    case DType::f32:
      return square_sum_of<float>(array, begin, end);
    case DType::f64:
      return square_sum_of<double>(array, begin, end);
    case DType::bf16:
      return square_sum_of<BFloat16>(array, begin, end);
    default:
      return square_sum_of<Float16>(array, begin, end);
  }
}

// Writes or adds a sum of squares for each block. A null `ready` means not gated.
__global__ void square_sums_kernel(Gradients gradients, double* work, const bool* ready,
                                   bool is_first) {
  __shared__ double scratch[kWarp];
  if (ready != nullptr && !*ready) return;
  double sum = 0;
  const std::int64_t chunks = gradients.first_chunk[gradients.rows];
  for (std::int64_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    const int row = gradients.row_of(chunk);
    const std::int64_t begin = (chunk - gradients.first_chunk[row]) * kChunk;
    const std::int64_t rest = gradients.elements[row] - begin;
    sum += square_sum_of(gradients.types[row], gradients.arrays[row], begin,
                         begin + (rest < kChunk ? rest : kChunk));
  }
  sum = BlockGroup(kThreads, scratch).sum(sum);
  if (threadIdx.x == 0) work[blockIdx.x] = is_first ? sum : work[blockIdx.x] + sum;
}

// Adds `sums` numbers up and writes scale and norm.
__global__ void clip_scale_kernel(double* work, int sums, double limit, const bool* ready,
                                  const std::int64_t* count) {
  __shared__ double scratch[kWarp];
  if (ready != nullptr && !*ready) return;
  const int first = 2 * static_cast<int>(threadIdx.x);
  double* const mine = work + first;
  const double total = BlockGroup(kThreads, scratch)
                           .sum((first < sums ? mine[0] : 0) + (first + 1 < sums ? mine[1] : 0));
  const double norm = std::sqrt(total) / (count == nullptr ? 1 : static_cast<double>(*count));
  const bool writes = threadIdx.x == 0;
  mine[0] = writes ? norm <= limit ? 1 : limit / norm : 0;
  mine[1] = writes ? norm : 0;
}

}  // namespace

Status clip_scale(const KernelContext& context) {
  const auto& attributes = context.attribute<optim::ClipAttributes>();
  const bool gated = attributes.gated != 0;
  double* const work = context.inputs[0].as<double>();
  const bool* const ready = gated ? context.inputs[1].as<const bool>() : nullptr;
  const std::int64_t* const count = gated ? context.inputs[2].as<const std::int64_t>() : nullptr;
  const std::span<const Buffer> gradients = context.inputs.subspan(gated ? 3 : 1);
  std::int64_t chunks = 0;
  for (const Buffer& gradient : gradients) chunks += divide_up(gradient.elements(), kChunk);
  // Every launch has the same number of blocks, so that every sum is written: a block without a
  // chunk writes 0.
  const int sums = static_cast<int>(std::clamp<std::int64_t>(chunks, 1, optim::kClipNumbers));
  Gradients some;
  bool is_first = true;
  const auto flush = [&]() -> Status {
    if (some.rows == 0 && !is_first) return {};
    Status status =
        launch(stream_of(context), square_sums_kernel, sums, kThreads, some, work, ready, is_first);
    if (!is_first) status.refused = false;
    is_first = false;
    some = {};
    return status;
  };
  for (const Buffer& gradient : gradients) {
    some.add(gradient);
    if (some.rows < Gradients::kRows) continue;
    if (const Status status = flush(); !status.ok()) return status;
  }
  if (const Status status = flush(); !status.ok()) return status;
  Status status = launch(stream_of(context), clip_scale_kernel, 1, kThreads, work, sums,
                         attributes.limit, ready, count);
  status.refused = false;
  return status;
}

}  // namespace ebb::cuda
