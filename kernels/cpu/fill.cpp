#include <cstring>

#include "ebb/core/kernels/convert.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/vector_half.h"

namespace ebb::cpu {
namespace {

// Bytes that one thread copies or sets alone.
constexpr std::int64_t kPieceBytes = 256 * 1024;

template <class From, class To>
void cast_run(const Buffer& in, const Buffer& out) {
  const From* from = in.as<const From>();
  To* to = out.as<To>();
  for_pieces(out.elements(), kPieceElements, [=](std::int64_t begin, std::int64_t end) {
    if constexpr ((kIsHalf<From> && std::is_same_v<To, float>) ||
                  (kIsHalf<To> && std::is_same_v<From, float>))
      convert_run(from + begin, to + begin, end - begin);
    else
      for (std::int64_t i = begin; i < end; ++i) to[i] = convert<To>(from[i]);
  });
}

}  // namespace

Status fill(const KernelContext& context) {
  const Buffer& out = context.outputs[0];
  const std::uint64_t element =
      element_of(out.spec.dtype, context.attribute<FillAttributes>().value);
  return for_word(out.spec.dtype, [&](auto word) {
    std::memcpy(&word, &element, sizeof(word));
    auto* to = out.as<decltype(word)>();
    for_pieces(out.elements(), kPieceElements, [=](std::int64_t begin, std::int64_t end) {
      std::fill(to + begin, to + end, word);
    });
  });
}

Status copy(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  if (in.data == out.data) return {};
  const auto* from = in.as<const std::byte>();
  auto* to = out.as<std::byte>();
  for_pieces(static_cast<std::int64_t>(out.spec.bytes()), kPieceBytes,
             [=](std::int64_t begin, std::int64_t end) {
               std::memcpy(to + begin, from + begin, static_cast<std::size_t>(end - begin));
             });
  return {};
}

Status cast(const KernelContext& context) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  if (in.spec.dtype == out.spec.dtype) return copy(context);
  return for_stored(in.spec.dtype, [&]<class From>(From) {
    return for_number(out.spec.dtype, [&]<class To>(To) { cast_run<From, To>(in, out); });
  });
}

}  // namespace ebb::cpu
