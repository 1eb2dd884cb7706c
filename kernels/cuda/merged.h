// Elementwise updates of many tensors by few kernels, as an optimizer updates all its parameters.
//
// A rule is a struct, passed to the kernel, with the values that are equal for all elements:
//   kArrays, kWritten                 arrays, the operator's first inputs; the first kWritten of
//                                     them are written
//   bool is_open()                    on the device: whether anything is done at all
//   Constants<T> constants<T>()       on the device, by one thread of a block; trivial
//   update(constants, T (&x)[kArrays])  one element of all arrays
// T is the widest type that the arrays are computed in; each array is stored in its own dtype. A
// rule is compiled twice for each of float and double: for arrays that are all stored as that type,
// and with a switch on each array's dtype. The switch takes the same branch in all threads and
// avoids a kernel for each combination of dtypes.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <type_traits>

#include "ebb/core/kernels/convert.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/launch.h"
#include "ebb/kernels/cuda/pack.h"

namespace ebb::cuda {

// The tensors of a launch: as many as fit the 4 KiB of a kernel's arguments. Chunks are counted in
// 32 bits, enough for more than any device holds.
template <int kArrays>
struct MergedTable {
  static constexpr std::int64_t kChunk = 2048;  // elements that a block works on at a time
  static constexpr int kRows =
      3840 / (kArrays * sizeof(void*) + sizeof(std::int64_t) + sizeof(std::uint32_t)) - 1;

  void* arrays[kRows][kArrays];
  std::int64_t elements[kRows];
  std::uint32_t first_chunk[kRows + 1] = {};  // per row; the last is the number of chunks
  int rows = 0;

  // Whether such a row must wait for a row that is here already: one of the two writes memory that
  // the other reads or writes, and rows of a launch run in any order. `sizes`: bytes of an element
  // of each array.
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
  __host__ __device__ std::uint32_t chunks() const { return first_chunk[rows]; }
  // The elements of a chunk. Its row is the last that does not begin after it.
  struct Part {
    int row;
    std::int64_t begin, count;
  };
  __device__ Part part(std::uint32_t chunk) const {
    int low = 0, high = rows;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first_chunk[middle] <= chunk ? low : high) = middle;
    }
    const std::int64_t begin = (chunk - first_chunk[low]) * kChunk, rest = elements[low] - begin;
    return {low, begin, rest < kChunk ? rest : kChunk};
  }
};

// Dtypes that the arrays of a launch are stored in.
template <int kArrays>
struct MergedTypes {
  DType types[kArrays];

  bool has(bool (*is)(DType)) const noexcept { return std::any_of(types, types + kArrays, is); }
};

// Calls f(S{}) with the stored type of an array computed in T. All threads take the same branch.
template <class T, bool kAllT, class F>
__device__ inline void for_stored(DType type, const F& f) {
  if constexpr (kAllT) {
    f(T{});
  } else if constexpr (std::is_same_v<T, double>) {
    type == DType::f64 ? f(double{}) : f(float{});
  } else {
    type == DType::f32 ? f(float{}) : type == DType::bf16 ? f(BFloat16{}) : f(Float16{});
  }
}

// One row: a tensor for each array.
template <class Rule, class T, bool kAllT>
struct MergedRow {
  static constexpr int kArrays = Rule::kArrays;
  using Constants = typename Rule::template Constants<T>;

  void* arrays[kArrays];
  MergedTypes<kArrays> stored;

  template <int N>
  __device__ void update(const Constants& constants, std::int64_t i) const {
    T x[N][kArrays];
    for (int k = 0; k < kArrays; ++k)
      for_stored<T, kAllT>(stored.types[k], [&](auto type) {
        const auto pack = load<N>(static_cast<const decltype(type)*>(arrays[k]) + i);
        for (int j = 0; j < N; ++j) x[j][k] = convert<T>(pack[j]);
      });
    for (int j = 0; j < N; ++j) Rule::update(constants, x[j]);
    for (int k = 0; k < Rule::kWritten; ++k)
      for_stored<T, kAllT>(stored.types[k], [&](auto type) {
        using X = decltype(type);
        Pack<X, N> pack;
        for (int j = 0; j < N; ++j) pack[j] = convert<X>(x[j][k]);
        store(static_cast<X*>(arrays[k]) + i, pack);
      });
  }
  template <int N>
  __device__ bool is_aligned() const {
    bool aligned = true;
    for (int k = 0; k < kArrays; ++k)
      for_stored<T, kAllT>(stored.types[k], [&](auto type) {
        aligned = aligned && takes_packs<N>(static_cast<const decltype(type)*>(arrays[k]));
      });
    return aligned;
  }
};

template <class Rule, class T, bool kAllT>
__global__ void merged_kernel(Rule rule, MergedTypes<Rule::kArrays> stored,
                              MergedTable<Rule::kArrays> table) {
  using Row = MergedRow<Rule, T, kAllT>;
  constexpr int N = 16 / static_cast<int>(sizeof(T));
  __shared__ typename Row::Constants shared;
  if (!rule.is_open()) return;
  if (threadIdx.x == 0) shared = rule.template constants<T>();
  __syncthreads();
  const typename Row::Constants constants = shared;
  for (std::uint32_t chunk = blockIdx.x; chunk < table.chunks(); chunk += gridDim.x) {
    const auto [index, begin, count] = table.part(chunk);
    Row row;
    row.stored = stored;
    for (int k = 0; k < Rule::kArrays; ++k) row.arrays[k] = table.arrays[index][k];
    const std::int64_t packed = row.template is_aligned<N>() ? count / N * N : 0;
    for (std::int64_t i = threadIdx.x * N; i < packed; i += kThreads * N)
      row.template update<N>(constants, begin + i);
    for (std::int64_t i = packed + threadIdx.x; i < count; i += kThreads)
      row.template update<1>(constants, begin + i);
  }
}

// Launches that share one rule.
struct MergedGroup {
  std::span<const Launch> launches;
  bool only_asked = false;  // asks whether there is a kernel; does nothing else

  const KernelContext& front() const noexcept { return launches.front().context; }

  // Runs in float or double, the wider of the stored dtypes.
  template <class Rule>
  Status run(const Rule& rule) const noexcept {
    MergedTypes<Rule::kArrays> stored;
    for (std::size_t k = 0; k < Rule::kArrays; ++k) stored.types[k] = front().inputs[k].spec.dtype;
    const bool has_wide = stored.has([](DType type) { return type == DType::f64; });
    if (stored.has([](DType type) { return !is_floating(type); }) ||
        (has_wide && stored.has([](DType type) { return is_half(type); })))
      return kNoKernel;
    return has_wide ? run<double>(rule, stored) : run<float>(rule, stored);
  }

 private:
  template <class T, class Rule>
  Status run(const Rule& rule, const MergedTypes<Rule::kArrays>& stored) const noexcept {
    return stored.has([](DType type) { return type != dtype_of<T>; })
               ? run(rule, stored, merged_kernel<Rule, T, false>)
               : run(rule, stored, merged_kernel<Rule, T, true>);
  }
  template <class Rule, class Function>
  Status run(const Rule& rule, const MergedTypes<Rule::kArrays>& stored,
             Function* kernel) const noexcept {
    using Table = MergedTable<Rule::kArrays>;
    static_assert(sizeof(Rule) + sizeof(stored) + sizeof(Table) + 8 <= 4096);
    if (only_asked) return {};
    Status status;
    Table table;
    bool has_written = false;
    const auto flush = [&] {
      if (table.rows == 0 || !status.ok()) return;
      const std::int64_t chunks = table.chunks();
      constexpr std::int64_t kBlocks = 2048;  // few, since each computes the constants
      status = launch(stream_of(front()), kernel,
                      static_cast<unsigned>(chunks < kBlocks ? chunks : kBlocks), kThreads, rule,
                      stored, table);
      if (has_written) status.refused = false;
      has_written = true;
      table = {};
    };
    std::array<std::int64_t, Rule::kArrays> sizes;
    for (std::size_t k = 0; k < sizes.size(); ++k)
      sizes[k] = static_cast<std::int64_t>(size_of(stored.types[k]));
    for (const Launch& one : launches) {
      const std::int64_t count = one.context.inputs[0].elements();
      if (count == 0) continue;
      if (table.meets(one.context.inputs, count, sizes, Rule::kWritten)) flush();
      table.add(one.context.inputs, count);
      if (table.rows == Table::kRows) flush();
    }
    flush();
    return status;
  }
};

// Whether b may run with a: equal attributes and dtypes of the arrays, and the same scalars, which
// are the inputs after the arrays.
inline bool in_one_group(const KernelContext& a, const KernelContext& b,
                         std::size_t arrays) noexcept {
  if (!(*a.attributes == *b.attributes) || a.inputs.size() != b.inputs.size()) return false;
  for (std::size_t k = 0; k < a.inputs.size(); ++k)
    if (k < arrays ? a.inputs[k].spec.dtype != b.inputs[k].spec.dtype
                   : a.inputs[k].data != b.inputs[k].data)
      return false;
  return true;
}

// Runs a merged kernel for a single launch.
inline Status run_one(MergedKernel kernel, const KernelContext& context) noexcept {
  const Launch launch{.run = nullptr, .context = context};
  return kernel({&launch, 1});
}

// Runs the updates of the launches, merging neighbours that share a rule; rule_of(context) makes
// the rule. Checks first that there are kernels for all of them.
template <class RuleOf>
Status run_merged(std::span<const Launch> launches, const RuleOf& rule_of) noexcept {
  constexpr std::size_t kArrays = decltype(rule_of(launches[0].context))::kArrays;
  for (const bool only_asked : {true, false}) {
    for (std::size_t begin = 0, end = 0; begin < launches.size(); begin = end) {
      const KernelContext& first = launches[begin].context;
      while (end < launches.size() && in_one_group(first, launches[end].context, kArrays)) ++end;
      Status status =
          MergedGroup{launches.subspan(begin, end - begin), only_asked}.run(rule_of(first));
      if (status.ok()) continue;
      if (begin > 0 && !only_asked) status.refused = false;  // earlier groups are written
      return status;
    }
  }
  return {};
}

}  // namespace ebb::cuda
