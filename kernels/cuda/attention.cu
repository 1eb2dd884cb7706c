#include "ebb/core/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/group.h"
#include "ebb/kernels/cuda/prepared_plan.h"
#include "ebb/kernels/cuda/tf32_tile.h"
#include "ebb/kernels/cuda/tile_product.h"
#include "ebb/kernels/cuda/walk.h"

// A block computes a tile of a result and goes through the tiles of the scores that it depends on.
// Where a result is wider than a tile, the scores are computed again for each of its tiles.
namespace ebb::cuda {
namespace {

constexpr int kBlock = kTileThreads * kTileThreads;

// Tensor cores multiply 16 bits from capability 8.0 on.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
template <class T>
using Factors = TileFactors<Accumulate<T>, 8>;
#else
template <class T>
using Factors = std::conditional_t<sizeof(T) == 2, Tf32Factors, TileFactors<Accumulate<T>, 8>>;
#endif

template <class A>
using Sums = A[kTileEach][kTileEach];

// Shared memory of a block, within the 48 KiB that every kernel may have.
template <class T>
struct Shared {
  using A = Accumulate<T>;
  Factors<T> factors;
  A tile[kTileSide][kTilePitch];  // scores, or values made from them: queries by keys
  A largest[kTileSide], sums[kTileSide], shrunk[kTileSide];
};

template <class T>
struct Attention {
  using A = Accumulate<T>;
  static constexpr int kDepth = Factors<T>::kDepth;
  AttentionLayout of;
  const T *q, *k, *v;
  const T* added = nullptr;  // additive mask; counts: boolean mask. At most one
  const unsigned char* counts = nullptr;
  std::int64_t mask_row = 0, mask_column = 0;  // as in MaskLayout
  Walk<std::uint64_t, kMaxRank> mask_of_batch = {};
  A scale;
  bool causal;
  // Written by forward, read by backward.
  T* y = nullptr;
  A* lse = nullptr;
  // Backward.
  const T* dy = nullptr;
  const A* dots = nullptr;
  T* gradient = nullptr;

  // sums += products of rows of a, from `row` on, with rows of b, from `line` on. Both have `depth`
  // columns.
  __device__ void add_rows(Shared<T>& shared, const T* a, std::int64_t row, std::int64_t rows,
                           const T* b, std::int64_t line, std::int64_t lines, std::int64_t depth,
                           Sums<A>& sums) const {
    const auto at = [depth](const T* of_all, std::int64_t i, std::int64_t count, std::int64_t d) {
      return i < count && d < depth ? static_cast<A>(of_all[i * depth + d]) : A(0);
    };
    for (std::int64_t first = 0; first < depth; first += kDepth) {
      for_tile<kDepth, true, 1>([&](int d, int i) {
        shared.factors.set_a(d, i, at(a, row + i, rows, first + d));
        shared.factors.set_b(d, i, at(b, line + i, lines, first + d));
      });
      __syncthreads();
      add_products(shared.factors, sums);
      __syncthreads();
    }
  }

  // sums += the shared tile, or its transpose, times rows of b. b has `rows` rows of `width`
  // columns; its part begins at `row` and `column`.
  template <bool kTransposed>
  __device__ void add_tile(Shared<T>& shared, const T* b, std::int64_t row, std::int64_t rows,
                           std::int64_t width, std::int64_t column, Sums<A>& sums) const {
// Here and below: unrolled, it runs out of registers.
#pragma unroll 1
    for (int first = 0; first < kTileSide; first += kDepth) {
      for_tile<kDepth, true, 1>([&](int d, int i) {
        shared.factors.set_a(d, i,
                             kTransposed ? shared.tile[first + d][i] : shared.tile[i][first + d]);
      });
      for_tile<kDepth, false, 1>([&](int d, int i) {
        const std::int64_t at = row + first + d;
        const bool is_there = at < rows && column + i < width;
        shared.factors.set_b(d, i, is_there ? static_cast<A>(b[at * width + column + i]) : A(0));
      });
      __syncthreads();
      add_products(shared.factors, sums);
      __syncthreads();
    }
  }

  // Writes the products of a tile of queries and keys into the shared tile. The caller adds the
  // barrier.
  __device__ void products(Shared<T>& shared, std::int64_t batch, std::int64_t query,
                           std::int64_t key) const {
    Sums<A> sums = {};
    add_rows(shared, q + batch * of.length * of.depth, query, of.length,
             k + batch * of.keys * of.depth, key, of.keys, of.depth, sums);
    for_sums(shared.factors, sums, [&](int i, int j, A sum) { shared.tile[i][j] = sum; });
  }
  // The score of a query and a key, from their product. `masked` is where the mask of this batch
  // begins. -infinity for keys that are masked or lie beyond the matrix.
  __device__ A score(A product, std::int64_t masked, std::int64_t query, std::int64_t key) const {
    constexpr A kNone = -std::numeric_limits<A>::infinity();
    if (query >= of.length || key >= of.keys || (causal && key > query)) return kNone;
    const std::int64_t at = masked + query * mask_row + key * mask_column;
    if (counts != nullptr && counts[at] == 0) return kNone;
    const A scaled = product * scale;
    return added == nullptr ? scaled : scaled + static_cast<A>(added[at]);
  }
};

// Computes y and lse for a tile of queries and a tile of y's columns.
template <class T>
__global__ void __launch_bounds__(kBlock)
    attention_kernel(const Attention<T> a, const ProductTiles tiles) {
  using std::exp, std::log;
  using A = Accumulate<T>;
  constexpr A kLowest = -std::numeric_limits<A>::infinity();
  constexpr int kParts = kBlock / kTileSide;  // threads per row
  __shared__ Shared<T> shared;
  const AttentionLayout& of = a.of;
  const int row = static_cast<int>(threadIdx.x) / kParts,
            part = static_cast<int>(threadIdx.x) % kParts;
  for (std::int64_t at = blockIdx.x; at < tiles.count; at += gridDim.x) {
    const auto [batch, query, column] = tiles.position(at);
    const std::int64_t end = a.causal && query + kTileSide < of.keys ? query + kTileSide : of.keys;
    const T* const v = a.v + batch * of.keys * of.width;
    const std::int64_t masked = a.mask_of_batch.offset(batch);
    Sums<A> results = {};
    if (part == 0) {
      shared.largest[row] = kLowest;
      shared.sums[row] = 0;
    }
    for (std::int64_t key = 0; key < end; key += kTileSide) {
      a.products(shared, batch, query, key);
      __syncthreads();
      A largest = kLowest;
#pragma unroll 1
      for (int j = part; j < kTileSide; j += kParts) {
        const A score = a.score(shared.tile[row][j], masked, query + row, key + j);
        shared.tile[row][j] = score;
        if (score > largest) largest = score;
      }
      for (int distance = kParts / 2; distance > 0; distance /= 2) {
        const A other = __shfl_xor_sync(kWholeWarp, largest, distance);
        if (other > largest) largest = other;
      }
      const A before = shared.largest[row];
      if (before > largest) largest = before;
      const A shift = largest == kLowest ? A(0) : largest;
      A sum = 0;
#pragma unroll 1
      for (int j = part; j < kTileSide; j += kParts) {
        const A e = exp(shared.tile[row][j] - shift);
        shared.tile[row][j] = e;
        sum += e;
      }
      for (int distance = kParts / 2; distance > 0; distance /= 2)
        sum += __shfl_xor_sync(kWholeWarp, sum, distance);
      __syncthreads();
      if (part == 0) {
        const A shrunk = before == largest ? A(1) : exp(before - shift);
        shared.largest[row] = largest;
        shared.shrunk[row] = shrunk;
        shared.sums[row] = shared.sums[row] * shrunk + sum;
      }
      __syncthreads();
      for_sums(shared.factors, results, [&](int i, int, A& result) { result *= shared.shrunk[i]; });
      a.template add_tile<false>(shared, v, key, of.keys, of.width, column, results);
    }
    __syncthreads();  // needed even if there were no keys
    T* const y = a.y + (batch * of.length + query) * of.width + column;
    const auto rows =
                   static_cast<int>(of.length - query < kTileSide ? of.length - query : kTileSide),
               columns =
                   static_cast<int>(of.width - column < kTileSide ? of.width - column : kTileSide);
    for_sums(shared.factors, results, [&](int i, int j, A result) {
      const A sum = shared.sums[i];
      if (i < rows && j < columns)
        y[i * of.width + j] = static_cast<T>(sum == A(0) ? A(0) : result / sum);
    });
    if (a.lse != nullptr && column == 0 && part == 0 && query + row < of.length) {
      const A sum = shared.sums[row];
      a.lse[batch * of.length + query + row] =
          sum == A(0) ? -kLowest : shared.largest[row] + log(sum);
    }
    __syncthreads();  // before the block's next tile
  }
}

// The gradient that a block computes a tile of.
enum class Of { q, k, v };

// p = exp(scores - lse), dv = p^T dy, ds = p (dy v^T - dots) scale, dq = ds k, dk = ds^T q.
template <Of kOf, class T>
__global__ void __launch_bounds__(kBlock)
    attention_backward_kernel(const Attention<T> a, const ProductTiles tiles) {
  using std::exp;
  using A = Accumulate<T>;
  __shared__ Shared<T> shared;
  const AttentionLayout& of = a.of;
  const std::int64_t width = kOf == Of::v ? of.width : of.depth,
                     rows = kOf == Of::q ? of.length : of.keys;
  for (std::int64_t at = blockIdx.x; at < tiles.count; at += gridDim.x) {
    const ProductTiles::Position corner = tiles.position(at);
    const std::int64_t batch = corner.product, row = corner.row, column = corner.column;
    const T* const dy = a.dy + batch * of.length * of.width;
    const T* const v = a.v + batch * of.keys * of.width;
    const std::int64_t masked = a.mask_of_batch.offset(batch);
    // With a causal mask a query sees the keys up to its own position, so a key is seen by the
    // queries from its position on.
    const std::int64_t begin = kOf != Of::q && a.causal ? row : 0;
    const std::int64_t all = kOf == Of::q ? of.keys : of.length;
    const std::int64_t end =
        kOf == Of::q && a.causal && row + kTileSide < all ? row + kTileSide : all;
    Sums<A> results = {};
    for (std::int64_t other = begin; other < end; other += kTileSide) {
      const std::int64_t query = kOf == Of::q ? row : other, key = kOf == Of::q ? other : row;
      a.products(shared, batch, query, key);
      __syncthreads();
      for_tile<kTileSide, false, 1>([&](int i, int j) {
        A& p = shared.tile[i][j];
        const A score = a.score(p, masked, query + i, key + j);
        p = query + i < of.length ? exp(score - a.lse[batch * of.length + query + i]) : A(0);
      });
      if (kOf != Of::v) {
        Sums<A> d = {};
        a.add_rows(shared, dy, query, of.length, v, key, of.keys, of.width, d);
        __syncthreads();  // needed even if there were no columns to add
        for_sums(shared.factors, d, [&](int i, int j, A of_p) {
          const A dots = query + i < of.length ? a.dots[batch * of.length + query + i] : A(0);
          shared.tile[i][j] *= (of_p - dots) * a.scale;
        });
      }
      __syncthreads();
      if (kOf == Of::q)
        a.template add_tile<false>(shared, a.k + batch * of.keys * of.depth, key, of.keys, of.depth,
                                   column, results);
      else if (kOf == Of::k)
        a.template add_tile<true>(shared, a.q + batch * of.length * of.depth, query, of.length,
                                  of.depth, column, results);
      else
        a.template add_tile<true>(shared, dy, query, of.length, of.width, column, results);
    }
    for_sums(shared.factors, results, [&](int i, int j, A result) {
      if (row + i < rows && column + j < width)
        a.gradient[(batch * rows + row + i) * width + column + j] = static_cast<T>(result);
    });
  }
}

// dots = sum(dy y) for each query.
template <class T>
struct Dots {
  const T *dy, *y;
  Accumulate<T>* dots;
  std::int64_t width;

  template <int N>
  __device__ void at(std::int64_t row) const {
    Accumulate<T> sum = 0;
    for (std::int64_t i = row * width; i < (row + 1) * width; ++i)
      sum += static_cast<Accumulate<T>>(dy[i]) * static_cast<Accumulate<T>>(y[i]);
    dots[row] = sum;
  }
};

template <class T>
struct CausalBias {
  T* out;
  std::int64_t keys;

  template <int N>
  __device__ void at(std::int64_t i) const {
    const std::int64_t query = i / keys;
    out[i] = T(i - query * keys <= query ? 0.f : -std::numeric_limits<float>::infinity());
  }
};

template <class T>
Attention<T> attention_of(const KernelContext& context, std::size_t mask_input) noexcept {
  const auto& attributes = context.attribute<AttentionAttributes>();
  const std::span<const Buffer> in = context.inputs;
  Attention<T> a{.of = {in[0].spec.shape, in[2].spec.shape},
                 .q = in[0].as<const T>(),
                 .k = in[1].as<const T>(),
                 .v = in[2].as<const T>(),
                 .scale = static_cast<Accumulate<T>>(attributes.scale),
                 .causal = attributes.causal != 0};
  if (attributes.mask == 0) return a;
  const Buffer& mask = in[mask_input];
  const MaskLayout layout(mask.spec.shape, batch_axes(in[0].spec.shape));
  a.mask_row = layout.row;
  a.mask_column = layout.column;
  for (int axis = 0; axis < layout.axes; ++axis)
    a.mask_of_batch.add(layout.size[axis], {layout.step[axis]});
  if (mask.spec.dtype == DType::boolean) {
    a.counts = mask.as<const unsigned char>();
  } else {
    a.added = mask.as<const T>();
  }
  return a;
}

template <class T>
Status run(const KernelContext& context, void (*kernel)(Attention<T>, ProductTiles),
           const Attention<T>& a, std::int64_t rows, std::int64_t width) noexcept {
  const ProductTiles tiles(rows, std::max<std::int64_t>(1, width), a.of.batch);
  if (tiles.count == 0) return {};
  return launch(stream_of(context), kernel, tiles.blocks(), kBlock, a, tiles);
}

}  // namespace

Status attention(const KernelContext& context) {
  const Buffer &y = context.outputs[0], &lse = context.outputs[1];
  Status status;
  if (is_done(context, status)) return status;
  return for_floating(y.spec.dtype, [&]<class T>(T) {
    Attention<T> a = attention_of<T>(context, 3);
    a.y = y.as<T>();
    a.lse = lse.as<Accumulate<T>>();
    return run(context, attention_kernel<T>, a, a.of.length, a.of.width);
  });
}

Status attention_backward(const KernelContext& context) {
  const std::span<const Buffer> in = context.inputs;
  return for_floating(in[0].spec.dtype, [&]<class T>(T) {
    Attention<T> a = attention_of<T>(context, kAttentionMask);
    a.lse = in[kAttentionLse].as<Accumulate<T>>();
    a.dy = in[kAttentionDy].as<const T>();
    auto* const dots = static_cast<Accumulate<T>*>(context.workspace);
    a.dots = dots;
    Status status = for_each<1>(stream_of(context),
                                Dots<T>{a.dy, in[kAttentionY].as<const T>(), dots, a.of.width},
                                a.of.batch * a.of.length, false);
    const auto make = [&](const Buffer& gradient, void (*kernel)(Attention<T>, ProductTiles),
                          std::int64_t rows, std::int64_t width) {
      a.gradient = gradient.as<T>();
      if (status.ok() && gradient.elements() != 0 && a.gradient != nullptr)
        status = run(context, kernel, a, rows, width);
    };
    make(context.outputs[0], attention_backward_kernel<Of::q, T>, a.of.length, a.of.depth);
    make(context.outputs[1], attention_backward_kernel<Of::k, T>, a.of.keys, a.of.depth);
    make(context.outputs[2], attention_backward_kernel<Of::v, T>, a.of.keys, a.of.width);
    return status;
  });
}

Status causal_bias(const KernelContext& context) {
  const Buffer& out = context.outputs[0];
  return for_floating(out.spec.dtype, [&]<class T>(T) {
    const std::int64_t keys = out.spec.shape.dim(1);
    return for_each<1>(stream_of(context), CausalBias<T>{out.as<T>(), keys}, out.elements(), false);
  });
}

}  // namespace ebb::cuda
