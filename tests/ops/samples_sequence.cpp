#include "ebb/core/ops/sequence.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {

void sequence_family(std::vector<Sample>& samples, References& references, DType) {
  const auto add = [&](const char* how, std::vector<SampleInput> inputs) {
    samples.push_back(moving_sample(reverse_sequence_op, how, std::move(inputs),
                                    EBB_CALL(reverse_sequence(in[0], in[1]))));
  };
  using enum Values;  // lengths from 0 to 4
  add("rows of numbers", {{{kOpen, 4}}, {{kOpen}, long_labels}});
  add("rows of vectors", {{{kOpen, 5, 3}}, {{kOpen}, long_labels}});
  add("of planes", {{{3, 4, kOpen, 2}}, {{3}, long_labels}});

  references.add(reverse_sequence_op, [](const Application& a) -> Arrays {
    Array out(a.outputs[0].shape);
    for_each_index(out.shape, [&](const Index& place) {
      Index from = place;
      const auto length = static_cast<std::int64_t>(a[1][place[0]]);
      if (place[1] < length) from[1] = length - 1 - place[1];
      out[position(out.shape, place)] = a[0][position(out.shape, from)];
    });
    return {out};
  });
}

}  // namespace ebb::tests
