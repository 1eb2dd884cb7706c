// Elementwise updates of many tensors by few kernels, as an optimizer makes them of all parameters.
//
// A rule is a struct with what is the same for all elements, an argument of the kernel:
//   kArrays, kWritten              arrays, which are the operator's first inputs; of these the
//   first
//                                  kWritten are written
//   bool is_open()                 on the device: whether anything is done at all
//   Constants<T> constants<T>()    on the device, by one thread of a block; trivial
//   update(constants, T (&x)[kArrays])   one element of all arrays
// T is the widest type that the arrays, each of its own type, are computed in.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "ebb/core/device/backend.h"
#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/grid.h"
#include "ebb/kernels/cuda/host/dispatch.h"
#include "ebb/kernels/cuda/launch.h"
#include "ebb/kernels/cuda/pack.h"

namespace ebb::cuda {

// The tensors of a launch. All arguments of a kernel have 4 KiB; chunks are counted in 32 bits,
// which is enough for more than any device holds.
template <int kArrays>
struct MergedTable {
  static constexpr std::int64_t kChunk = 2048;  // elements that a block works on at a time
  static constexpr int kRows =
      3840 / (kArrays * sizeof(void*) + sizeof(std::int64_t) + sizeof(std::uint32_t)) - 1;

  void* arrays[kRows][kArrays];
  std::int64_t elements[kRows];
  std::uint32_t first_chunk[kRows + 1] = {};  // of each row, then how many there are
  int rows = 0;

  // Whether such a row has to come after one that is here: one of them writes what the other reads
  // or writes, and the rows of a launch are done in any order. `sizes`: of an element of each
  // array.
  bool meets(std::span<const Buffer> inputs, std::int64_t count,
             const std::array<std::int64_t, kArrays>& sizes, int written) const noexcept {
    const auto at = [](const void* data) { return reinterpret_cast<std::uintptr_t>(data); };
    for (int row = 0; row < rows; ++row)
      for (int k = 0; k < kArrays; ++k)
        for (int l = 0; l < kArrays; ++l) {
          if (k >= written && l >= written) continue;
          const std::uintptr_t here = at(arrays[row][k]);
          const std::uintptr_t there = at(inputs[static_cast<std::size_t>(l)].data);
          const auto bytes = [&](int array, std::int64_t of) {
            return static_cast<std::uintptr_t>(of * sizes[static_cast<std::size_t>(array)]);
          };
          if (here < there + bytes(l, count) && there < here + bytes(k, elements[row])) return true;
        }
    return false;
  }
  void add(std::span<const Buffer> inputs, std::int64_t count) noexcept {
    for (std::size_t k = 0; k < kArrays; ++k) arrays[rows][k] = inputs[k].data;
    elements[rows] = count;
    first_chunk[rows + 1] =
        first_chunk[rows] + static_cast<std::uint32_t>(divide_up(count, kChunk));
    ++rows;
  }
  // The last row that does not begin after the chunk.
  __device__ int row_of(std::uint32_t chunk) const {
    int low = 0, high = rows;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first_chunk[middle] <= chunk ? low : high) = middle;
    }
    return low;
  }
};

// One tensor of each array, from an element on.
template <class Rule, class... Types>
struct MergedRow {
  using T = std::common_type_t<Accumulate<Types>...>;
  using Constants = typename Rule::template Constants<T>;

  void* arrays[sizeof...(Types)];

  template <int N>
  __device__ void update(const Constants& constants, std::int64_t i) const {
    update<N>(constants, i, std::index_sequence_for<Types...>{});
  }
  template <int N>
  __device__ bool is_aligned() const {
    return is_aligned<N>(std::index_sequence_for<Types...>{});
  }

 private:
  template <int N, std::size_t... K>
  __device__ bool is_aligned(std::index_sequence<K...>) const {
    return takes_packs<N>(static_cast<const Types*>(arrays[K])...);
  }
  template <int N, std::size_t... K>
  __device__ void update(const Constants& constants, std::int64_t i,
                         std::index_sequence<K...>) const {
    T x[N][sizeof...(Types)];
    (read<K, Types>(x, i), ...);
    for (int j = 0; j < N; ++j) Rule::update(constants, x[j]);
    (write<K, Types>(x, i), ...);
  }
  template <std::size_t K, class X, int N>
  __device__ void read(T (&x)[N][sizeof...(Types)], std::int64_t i) const {
    const Pack<X, N> pack = load<N>(static_cast<const X*>(arrays[K]) + i);
    for (int j = 0; j < N; ++j) x[j][K] = static_cast<T>(static_cast<Accumulate<X>>(pack[j]));
  }
  template <std::size_t K, class X, int N>
  __device__ void write(const T (&x)[N][sizeof...(Types)], std::int64_t i) const {
    if constexpr (K < Rule::kWritten) {
      Pack<X, N> pack;
      for (int j = 0; j < N; ++j) pack[j] = convert<X>(x[j][K]);
      store(static_cast<X*>(arrays[K]) + i, pack);
    }
  }
};

template <class Rule, class... Types>
__global__ void merged_kernel(Rule rule, MergedTable<Rule::kArrays> table) {
  using Row = MergedRow<Rule, Types...>;
  constexpr int N = 16 / static_cast<int>(std::max({sizeof(Types)...}));
  constexpr std::int64_t kChunk = MergedTable<Rule::kArrays>::kChunk;
  __shared__ typename Row::Constants shared;
  if (!rule.is_open()) return;
  if (threadIdx.x == 0) shared = rule.template constants<typename Row::T>();
  __syncthreads();
  const typename Row::Constants constants = shared;
  const std::uint32_t chunks = table.first_chunk[table.rows];
  for (std::uint32_t chunk = blockIdx.x; chunk < chunks; chunk += gridDim.x) {
    const int index = table.row_of(chunk);
    Row row;
    for (int k = 0; k < Rule::kArrays; ++k) row.arrays[k] = table.arrays[index][k];
    const std::int64_t begin = (chunk - table.first_chunk[index]) * kChunk;
    const std::int64_t rest = table.elements[index] - begin;
    const std::int64_t count = rest < kChunk ? rest : kChunk;
    const std::int64_t packed = row.template is_aligned<N>() ? count / N * N : 0;
    for (std::int64_t i = threadIdx.x * N; i < packed; i += kThreads * N)
      row.template update<N>(constants, begin + i);
    for (std::int64_t i = packed + threadIdx.x; i < count; i += kThreads)
      row.template update<1>(constants, begin + i);
  }
}

// Launches that one rule is the same for.
struct MergedGroup {
  std::span<const Launch> launches;
  bool only_asked = false;  // whether there is a kernel: nothing is done

  const KernelContext& front() const noexcept { return launches.front().context; }

  // The dtypes of the arrays are those of the types.
  template <class... Types, class Rule>
  Status run(const Rule& rule) const noexcept {
    using Table = MergedTable<Rule::kArrays>;
    static_assert(sizeof...(Types) == Rule::kArrays && sizeof(Rule) + sizeof(Table) <= 4096);
    if (only_asked) return {};
    Status status;
    Table table;
    bool has_written = false;
    const auto flush = [&] {
      if (table.rows == 0 || !status.ok()) return;
      const std::int64_t chunks = table.first_chunk[table.rows];
      constexpr std::int64_t kBlocks = 2048;  // each works out the constants
      status =
          launch(stream_of(front()), merged_kernel<Rule, Types...>,
                 static_cast<unsigned>(chunks < kBlocks ? chunks : kBlocks), kThreads, rule, table);
      if (has_written) status.refused = false;
      has_written = true;
      table = {};
    };
    for (const Launch& one : launches) {
      const std::int64_t count = one.context.inputs[0].elements();
      if (count == 0) continue;
      constexpr std::array<std::int64_t, Rule::kArrays> kSizes = {sizeof(Types)...};
      if (table.meets(one.context.inputs, count, kSizes, Rule::kWritten)) flush();
      table.add(one.context.inputs, count);
      if (table.rows == Table::kRows) flush();
    }
    flush();
    return status;
  }
};

// Whether b may be done with a: the same attributes, dtypes of the arrays, and scalars, which are
// the inputs that follow them.
inline bool in_one_group(const KernelContext& a, const KernelContext& b,
                         std::size_t arrays) noexcept {
  if (!(*a.attributes == *b.attributes)) return false;
  for (std::size_t k = 0; k < a.inputs.size(); ++k)
    if (k < arrays ? a.inputs[k].spec.dtype != b.inputs[k].spec.dtype
                   : a.inputs[k].data != b.inputs[k].data)
      return false;
  return true;
}

// Calls f(P{}, S{}, G{}) for a parameter, its state and its gradient of these dtypes: f32 and f64
// in any mixture, and what goes with a parameter of 16 bits (optim/detail/update_operator.h).
template <class F>
Status for_update(DType parameter, DType state, DType gradient, const F& f) noexcept {
  if (!is_half(parameter))
    return for_wide(parameter, [&](auto p) {
      return for_wide(
          state, [&](auto s) { return for_wide(gradient, [&](auto g) { return f(p, s, g); }); });
    });
  return for_half(parameter, [&](auto p) {
    if (state != DType::f32) return kNoKernel;
    if (gradient == DType::f32) return f(p, float{}, float{});
    return gradient == parameter ? f(p, float{}, p) : kNoKernel;
  });
}

// A merged kernel for one.
inline Status run_one(MergedKernel kernel, const KernelContext& context) noexcept {
  const Launch launch{.run = nullptr, .context = context};
  return kernel({&launch, 1});
}

// Calls run(group) for each run of launches that belong together; arrays(context) is how many of
// the inputs are arrays. Asks first whether there are kernels for all of them.
template <class Arrays, class Run>
Status run_merged(std::span<const Launch> launches, const Arrays& arrays, const Run& run) noexcept {
  for (const bool only_asked : {true, false}) {
    for (std::size_t begin = 0, end = 0; begin < launches.size(); begin = end) {
      const KernelContext& first = launches[begin].context;
      while (end < launches.size() && in_one_group(first, launches[end].context, arrays(first)))
        ++end;
      Status status = run(MergedGroup{launches.subspan(begin, end - begin), only_asked});
      if (status.ok()) continue;
      if (begin > 0 && !only_asked) status.refused = false;  // what came before is written
      return status;
    }
  }
  return {};
}

}  // namespace ebb::cuda
