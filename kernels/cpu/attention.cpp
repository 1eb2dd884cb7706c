#include "ebb/core/kernels/attention.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ebb/core/kernels/carver.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/gemm.h"
#include "ebb/kernels/cpu/softmax_row.h"

namespace ebb::cpu {
namespace {

// A tile of the scores: some queries by some keys. Threads take slots, each with a tile or two.
constexpr std::int64_t kQueries = 64, kKeys = 256, kSlots = 16;

// The workspace of a slot, no larger than the largest tile of these shapes.
template <class T>
struct Tiles {
  T *scores, *d_scores, *row;

  Tiles(Carver& carver, const AttentionLayout& of, bool backward) noexcept {
    const std::int64_t queries = std::min(kQueries, of.length);
    const std::int64_t elements = queries * std::min(kKeys, of.keys);
    scores = carver.take<T>(elements);
    d_scores = carver.take<T>(backward ? elements : 0);
    row = carver.take<T>(2 * queries);
  }
};

// The backward cuts the queries and the keys of each matrix into `count` parts.
struct Parts {
  std::int64_t count, queries, keys;  // parts, and the sizes of one

  explicit Parts(const AttentionLayout& of) noexcept
      : count(std::clamp<std::int64_t>(std::min(of.length / kQueries, of.keys / kKeys), 1, kSlots)),
        queries(round_up(divide_up(of.length, count), kQueries)),
        keys(round_up(divide_up(of.keys, count), kQueries)) {}
};

std::int64_t slots_of(std::int64_t pieces) noexcept { return std::min(pieces, kSlots); }

template <class T>
std::size_t slot_bytes(const AttentionLayout& of, bool backward) noexcept {
  Carver carver(nullptr);
  Tiles<T>(carver, of, backward);
  return carver.bytes();
}

MemoryNeeds needs(DType dtype, const AttentionLayout& of, std::int64_t pieces,
                  bool backward) noexcept {
  const std::size_t bytes =
      dtype == DType::f64 ? slot_bytes<double>(of, backward) : slot_bytes<float>(of, backward);
  return {.workspace_bytes = static_cast<std::size_t>(slots_of(pieces)) * bytes};
}

template <class T, class Body>
void for_tiles(const AttentionLayout& of, std::int64_t pieces, void* workspace, bool backward,
               const Body& body) {
  const std::size_t bytes = slot_bytes<T>(of, backward);
  for_slots(pieces, slots_of(pieces), [&](std::int64_t piece, std::int64_t slot) {
    Carver carver(static_cast<std::byte*>(workspace) + static_cast<std::size_t>(slot) * bytes);
    body(piece, Tiles<T>(carver, of, backward));
  });
}

// The scores of one matrix of the batch.
template <class T>
struct Scores {
  const T *q, *k;
  const T* added = nullptr;  // the mask, of one of two kinds
  const unsigned char* counts = nullptr;
  MaskLayout mask;
  AttentionLayout of;
  T scale;
  bool causal;

  Scores(const KernelContext& context, const AttentionLayout& layout, std::size_t mask_input,
         std::int64_t batch)
      : of(layout) {
    const auto& attributes = context.attribute<AttentionAttributes>();
    q = context.inputs[0].as<const T>() + batch * of.length * of.depth;
    k = context.inputs[1].as<const T>() + batch * of.keys * of.depth;
    scale = static_cast<T>(attributes.scale);
    causal = attributes.causal != 0;
    if (attributes.mask == 0) return;
    const Buffer& given = context.inputs[mask_input];
    mask = MaskLayout(given.spec.shape, batch_axes(context.inputs[0].spec.shape));
    if (given.spec.dtype == DType::boolean) {
      counts = given.as<const unsigned char>() + mask.offset(batch);
    } else {
      added = given.as<const T>() + mask.offset(batch);
    }
  }

  // The number of keys that count for queries before `end`.
  std::int64_t keys_before(std::int64_t end) const noexcept {
    return causal ? std::min(of.keys, end) : of.keys;
  }

  // Computes the scores of queries from `query` on and keys from `key` on into a tile with rows of
  // `keys`.
  void tile(std::int64_t query, std::int64_t queries, std::int64_t key, std::int64_t keys,
            T* to) const noexcept {
    constexpr T kNever = -std::numeric_limits<T>::infinity();
    multiply<T>(queries, keys, of.depth, {q + query * of.depth, of.depth},
                {k + key * of.depth, of.depth, true}, to, keys, false);
    for (std::int64_t i = 0; i < queries; ++i) {
      T* row = to + i * keys;
      const std::int64_t first = (query + i) * mask.row + key * mask.column;
      for (std::int64_t j = 0; j < keys; ++j) row[j] *= scale;
      if (added != nullptr)
        for (std::int64_t j = 0; j < keys; ++j) row[j] += added[first + j * mask.column];
      if (counts != nullptr)
        for (std::int64_t j = 0; j < keys; ++j)
          row[j] = counts[first + j * mask.column] != 0 ? row[j] : kNever;
      if (!causal) continue;
      for (std::int64_t j = std::max<std::int64_t>(0, query + i + 1 - key); j < keys; ++j)
        row[j] = kNever;
    }
  }
};

template <class T>
T dot(const T* a, const T* b, std::int64_t count) noexcept {
  Block<T> sums = 0;
  std::int64_t i = 0;
  for (; i + kBlock<T> <= count; i += kBlock<T>) sums += load(a + i) * load(b + i);
  if (i < count) sums += load_tail(a + i, count - i, T{}) * load_tail(b + i, count - i, T{});
  return static_cast<T>(sum(sums));
}

}  // namespace

MemoryNeeds attention_memory(const MemoryQuery& query) {
  const DType dtype = query.inputs[0].dtype;
  const AttentionLayout of(query.inputs[0].shape, query.inputs[2].shape);
  return needs(dtype, of, of.batch * divide_up(of.length, kQueries), false);
}

// A piece is some queries of one matrix of the batch. While it goes through the tiles of its keys,
// y holds the sum of exp(score - largest so far) v, and is scaled down when a larger score comes.
Status attention(const KernelContext& context) {
  const Buffer &v = context.inputs[2], &y = context.outputs[0], &lse = context.outputs[1];
  const AttentionLayout of(context.inputs[0].spec.shape, v.spec.shape);
  const std::int64_t blocks = divide_up(of.length, kQueries);
  return for_wide(y.spec.dtype, [&]<class T>(T) {
    constexpr T kLowest = -std::numeric_limits<T>::infinity();
    for_tiles<T>(of, of.batch * blocks, context.workspace, false,
                 [&](std::int64_t piece, const Tiles<T>& tiles) {
                   const std::int64_t batch = piece / blocks, query = piece % blocks * kQueries;
                   const std::int64_t queries = std::min(kQueries, of.length - query);
                   const Scores<T> scores(context, of, 3, batch);
                   const T* values = v.as<const T>() + batch * of.keys * of.width;
                   T* out = y.as<T>() + (batch * of.length + query) * of.width;
                   T *largest = tiles.row, *sums = largest + std::min(kQueries, of.length);
                   std::fill_n(largest, queries, kLowest);
                   std::fill_n(sums, queries, T{});
                   const std::int64_t end = scores.keys_before(query + queries);
                   if (end == 0) std::fill_n(out, queries * of.width, T{});
                   for (std::int64_t key = 0; key < end; key += kKeys) {
                     const std::int64_t keys = std::min(kKeys, end - key);
                     scores.tile(query, queries, key, keys, tiles.scores);
                     for (std::int64_t i = 0; i < queries; ++i) {
                       T* row = tiles.scores + i * keys;
                       const T before = largest[i];
                       largest[i] = std::max(before, largest_score(row, keys));
                       const T shift = largest[i] == kLowest ? T{} : largest[i];
                       // Nothing is there to be scaled before the first tile.
                       const T shrunk =
                           key == 0 || before == largest[i] ? T{1} : std::exp(before - shift);
                       sums[i] = sums[i] * shrunk +
                                 static_cast<T>(exponentials<true>(row, keys, shift, row));
                       if (shrunk != T{1})
                         for (std::int64_t j = 0; j < of.width; ++j)
                           out[i * of.width + j] *= shrunk;
                     }
                     multiply<T>(queries, of.width, keys, {tiles.scores, keys},
                                 {values + key * of.width, of.width}, out, of.width, key > 0);
                   }
                   for (std::int64_t i = 0; i < queries; ++i) {
                     const bool is_none = sums[i] == T{};
                     const T scale = is_none ? T{} : 1 / sums[i];
                     for (std::int64_t j = 0; j < of.width; ++j) out[i * of.width + j] *= scale;
                     if (lse.data != nullptr)
                       lse.as<T>()[batch * of.length + query + i] =
                           is_none ? -kLowest : largest[i] + std::log(sums[i]);
                   }
                 });
  });
}

MemoryNeeds attention_backward_memory(const MemoryQuery& query) {
  const DType dtype = query.inputs[0].dtype;
  const AttentionLayout of(query.inputs[0].shape, query.inputs[2].shape);
  return needs(dtype, of, of.batch * Parts(of).count, true);
}

// Computes all tiles again:
//   p = exp(scores - lse), dv += p^T dy, ds = p (dy v^T - sum(dy y)) scale,
//   dq += ds k, dk += ds^T q
// Few matrices alone would leave threads idle. Each part of the queries meets each part of the keys
// in a round of its own, so no two pieces of a round add to the same rows, and each row's sum has
// one order.
Status attention_backward(const KernelContext& context) {
  const std::span<const Buffer> in = context.inputs;
  const AttentionLayout of(in[0].spec.shape, in[2].spec.shape);
  const Parts parts(of);
  return for_wide(in[0].spec.dtype, [&]<class T>(T) {
    const auto meet = [&](std::int64_t piece, std::int64_t round, const Tiles<T>& tiles) {
      const std::int64_t batch = piece / parts.count, part = piece % parts.count;
      // In this order causal rounds are equally long.
      const std::int64_t other = (round + parts.count - part) % parts.count;
      const std::int64_t first_query = std::min(of.length, part * parts.queries);
      const std::int64_t last_query = std::min(of.length, first_query + parts.queries);
      const std::int64_t first_key = std::min(of.keys, other * parts.keys);
      const std::int64_t last_key = std::min(of.keys, first_key + parts.keys);
      const Scores<T> scores(context, of, kAttentionMask, batch);
      const auto matrix = [&](const Buffer& of_all, std::int64_t elements) {
        return of_all.data == nullptr ? nullptr : of_all.as<T>() + batch * elements;
      };
      const T* v = matrix(in[kAttentionV], of.keys * of.width);
      const T* y = matrix(in[kAttentionY], of.length * of.width);
      const T* lse = matrix(in[kAttentionLse], of.length);
      const T* dy = matrix(in[kAttentionDy], of.length * of.width);
      T* dq = matrix(context.outputs[0], of.length * of.depth);
      T* dk = matrix(context.outputs[1], of.keys * of.depth);
      T* dv = matrix(context.outputs[2], of.keys * of.width);
      const auto clear = [&](T* to, std::int64_t first, std::int64_t last, std::int64_t columns) {
        if (to != nullptr && round == 0) std::fill(to + first * columns, to + last * columns, T{});
      };
      clear(dq, first_query, last_query, of.depth);
      clear(dk, first_key, last_key, of.depth);
      clear(dv, first_key, last_key, of.width);

      for (std::int64_t query = first_query; query < last_query; query += kQueries) {
        const std::int64_t queries = std::min(kQueries, last_query - query);
        const std::int64_t end = std::min(last_key, scores.keys_before(query + queries));
        if (end <= first_key) continue;
        for (std::int64_t i = 0; i < queries; ++i) {
          const std::int64_t row = (query + i) * of.width;
          tiles.row[i] = dot(dy + row, y + row, of.width);
        }
        for (std::int64_t key = first_key; key < end; key += kKeys) {
          const std::int64_t keys = std::min(kKeys, end - key);
          T *p = tiles.scores, *ds = tiles.d_scores;
          scores.tile(query, queries, key, keys, p);
          for (std::int64_t i = 0; i < queries; ++i)
            exponentials<true>(p + i * keys, keys, lse[query + i], p + i * keys);
          const Factor<T> of_dy{dy + query * of.width, of.width};
          if (dv != nullptr)
            multiply<T>(keys, of.width, queries, {p, keys, true}, of_dy, dv + key * of.width,
                        of.width, true);
          if (dq == nullptr && dk == nullptr) continue;
          multiply<T>(queries, keys, of.width, of_dy, {v + key * of.width, of.width, true}, ds,
                      keys, false);
          for (std::int64_t i = 0; i < queries; ++i)
            for (std::int64_t j = i * keys; j < (i + 1) * keys; ++j)
              ds[j] = p[j] * (ds[j] - tiles.row[i]) * scores.scale;
          if (dq != nullptr)
            multiply<T>(queries, of.depth, keys, {ds, keys}, {scores.k + key * of.depth, of.depth},
                        dq + query * of.depth, of.depth, true);
          if (dk != nullptr)
            multiply<T>(keys, of.depth, queries, {ds, keys, true},
                        {scores.q + query * of.depth, of.depth}, dk + key * of.depth, of.depth,
                        true);
        }
      }
    };
    for (std::int64_t round = 0; round < parts.count; ++round)
      for_tiles<T>(of, of.batch * parts.count, context.workspace, true,
                   [&](std::int64_t piece, const Tiles<T>& tiles) { meet(piece, round, tiles); });
  });
}

Status causal_bias(const KernelContext& context) {
  const Buffer& out = context.outputs[0];
  const std::int64_t length = out.spec.shape.dim(0), keys = out.spec.shape.dim(1);
  if (out.elements() == 0) return {};
  return for_floating(out.spec.dtype, [&]<class T>(T) {
    for_items(length, rows_per_piece(keys), [&](std::int64_t i) {
      T* row = out.as<T>() + i * keys;
      const std::int64_t seen = std::min(keys, i + 1);
      std::fill(row, row + seen, T(0.f));
      std::fill(row + seen, row + keys, T(-std::numeric_limits<float>::infinity()));
    });
  });
}

}  // namespace ebb::cpu
