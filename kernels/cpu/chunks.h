#pragma once
#include "ebb/kernels/cpu/broadcast.h"

namespace ebb::cpu {

// Reads an operand of a row in chunks of the type to compute in: 16 bits as floats, and a repeated
// element as copies. So a loop over two or three operands is written once, not once for each of
// them repeated.
template <class T>
class Chunks {
 public:
  using Value = Computed<T>;

  // `count` elements at data; `one`: a single value for all of them.
  Chunks(const T* data, bool one, std::int64_t count) noexcept : data_(data), one_(one) {
    if (one) std::fill_n(values_, std::min(count, kChunk), convert<Value>(*data));
  }
  // `count` of them from element i on, no more than kChunk.
  const Value* at(std::int64_t i, [[maybe_unused]] std::int64_t count) noexcept {
    if (one_) return values_;
    if constexpr (kIsHalf<T>) {
      convert_run(data_ + i, values_, count);
      return values_;
    } else {
      return data_ + i;
    }
  }

 private:
  const T* data_;
  bool one_;
  Value values_[kChunk];
};

// Calls loop(inputs.., out, count) on chunks of the inputs, which the walk is through, and of the
// output, for all rows.
template <class Loop, class Out, class... In>
void for_chunks(const BroadcastWalk<sizeof...(In)>& walk, const Loop& loop, Out* out,
                const In*... in) {
  const auto run = [&](std::int64_t first, std::int64_t count, Chunks<In>&&... chunks) {
    for (std::int64_t i = 0; i < count; i += kChunk) {
      const std::int64_t some = std::min(kChunk, count - i);
      loop(chunks.at(i, some)..., out + first + i, some);
    }
  };
  for_rows(walk, [&](const std::int64_t* from, std::int64_t first, std::int64_t count) {
    [&]<int... K>(std::integer_sequence<int, K...>) {
      run(first, count, Chunks<In>(in + from[K], walk.one(K), count)...);
    }
    (std::make_integer_sequence<int, sizeof...(In)>());
  });
}

}  // namespace ebb::cpu
