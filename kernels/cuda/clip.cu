#include "ebb/optim/kernels/clip.h"

#include <algorithm>
#include <cmath>

#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/group.h"
#include "ebb/kernels/cuda/merged.h"

namespace ebb::cuda {
namespace {

static_assert(optim::kClipNumbers == 2 * kThreads);

using Table = MergedTable<1>;

// As many gradients as fit a kernel's arguments.
struct Gradients {
  Table table;
  DType types[Table::kRows];

  void add(const Buffer& gradient) noexcept {
    types[table.rows] = gradient.spec.dtype;
    table.add({&gradient, 1}, gradient.elements());
  }
};
static_assert(sizeof(Gradients) + 24 <= 4096);

// A thread's share of the sum, in double: squares of f32 would overflow.
template <class T>
__device__ double square_sum_of(const void* array, std::int64_t begin, std::int64_t end) {
  const T* const x = static_cast<const T*>(array);
  return lane_sums<kPack<T>>(takes_packs<kPack<T>>(x), begin, end, static_cast<int>(threadIdx.x),
                             kThreads, [&]<int N>(std::int64_t i) {
                               const auto values = as_pack<Accumulate<T>>(load<N>(x + i));
                               Pack<double, N> squares = as_pack<double>(values);
                               for (int j = 0; j < N; ++j) squares[j] *= squares[j];
                               return squares;
                             })[0];
}

__device__ double square_sum_of(DType type, const void* array, std::int64_t begin,
                                std::int64_t end) {
  if (type == DType::f64) return square_sum_of<double>(array, begin, end);
  double sum = 0;
  for_stored<float, false>(type, [&]<class T>(T) { sum = square_sum_of<T>(array, begin, end); });
  return sum;
}

// Writes or adds a sum of squares for each block. A null `ready` means not gated.
__global__ void square_sums_kernel(Gradients gradients, double* work, const bool* ready,
                                   bool is_first) {
  __shared__ double scratch[kWarp];
  if (ready != nullptr && !*ready) return;
  double sum = 0;
  const Table& table = gradients.table;
  for (std::uint32_t chunk = blockIdx.x; chunk < table.chunks(); chunk += gridDim.x) {
    const Table::Part part = table.part(chunk);
    sum += square_sum_of(gradients.types[part.row], table.arrays[part.row][0], part.begin,
                         part.begin + part.count);
  }
  sum = Group(0, scratch).sum(sum);
  if (threadIdx.x == 0) work[blockIdx.x] = is_first ? sum : work[blockIdx.x] + sum;
}

// Adds `sums` numbers up and writes scale and norm.
__global__ void clip_scale_kernel(double* work, int sums, double limit, const bool* ready,
                                  const std::int64_t* count) {
  __shared__ double scratch[kWarp];
  if (ready != nullptr && !*ready) return;
  const int first = 2 * static_cast<int>(threadIdx.x);
  double* const mine = work + first;
  const double total =
      Group(0, scratch).sum((first < sums ? mine[0] : 0) + (first + 1 < sums ? mine[1] : 0));
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
  for (const Buffer& gradient : gradients) chunks += divide_up(gradient.elements(), Table::kChunk);
  // Every launch has the same number of blocks, so that every sum is written: a block without a
  // chunk writes 0.
  const auto sums = static_cast<unsigned>(std::clamp<std::int64_t>(chunks, 1, optim::kClipNumbers));
  Gradients some;
  bool is_first = true;
  const auto flush = [&]() -> Status {
    if (some.table.rows == 0 && !is_first) return {};
    Status status =
        launch(stream_of(context), square_sums_kernel, sums, kThreads, some, work, ready, is_first);
    if (!is_first) status.refused = false;
    is_first = false;
    some = {};
    return status;
  };
  for (const Buffer& gradient : gradients) {
    some.add(gradient);
    if (some.table.rows < Table::kRows) continue;
    EBB_TRY(flush());
  }
  EBB_TRY(flush());
  Status status = launch(stream_of(context), clip_scale_kernel, 1, kThreads, work, sums,
                         attributes.limit, ready, count);
  status.refused = false;
  return status;
}

}  // namespace ebb::cuda
