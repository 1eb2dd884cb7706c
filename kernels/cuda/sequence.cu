#include "ebb/core/kernels/sequence.h"

#include "ebb/kernels/cuda/for_each.h"
#include "ebb/kernels/cuda/walk.h"
#include "ebb/kernels/cuda/words.h"

namespace ebb::cuda {
namespace {

// Reverses steps in time, each step as words.
template <class W, class Index>
struct Reverse {
  const W* in;
  const std::int64_t* lengths;
  W* out;
  Split<Index, 3> split;  // row, step, word
  std::int64_t time, words;
  unsigned missing;

  template <int N>
  __device__ void at(std::int64_t i) const {
    const auto [row, t, word] = split(i);
    const std::int64_t length = lengths[row];
    const std::int64_t moved = t < length ? length - 1 - 2 * t : 0;
    out[i] = length >= 0 && length <= time ? in[i + moved * words] : word_of<W>(missing);
  }
};

}  // namespace

Status reverse_sequence(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const Sequences all(in.spec);
  if (out.elements() == 0) return {};
  const auto* lengths = context.inputs[1].as<const std::int64_t>();
  const unsigned missing = missing_byte(in.spec.dtype);
  return with_words(static_cast<std::size_t>(all.bytes), {in.data, out.data}, [&]<class W>(W) {
    const std::int64_t words = all.bytes / static_cast<std::int64_t>(sizeof(W));
    const std::int64_t count = all.batch * all.time * words;
    return with_index(count, [&]<class Index>(Index) {
      const Reverse<W, Index> body{
          in.as<const W>(), lengths, out.as<W>(), Split<Index, 3>({all.time, words}),
          all.time,         words,   missing};
      return for_each<1>(stream_of(context), body, count, true);
    });
  });
}

}  // namespace ebb::cuda
