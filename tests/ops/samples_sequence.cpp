#include "ebb/core/ops/sequence.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {

void add_sequence_samples(std::vector<Sample>& samples) {
  const auto add = [&](const char* how, std::vector<SampleInput> inputs) {
    samples.push_back(
        moving_sample(reverse_sequence_op, how, std::move(inputs),
                      [](const Tensors& in) { return reverse_sequence(in[0], in[1]); }));
  };
  using enum Values;  // lengths from 0 to 4
  add("rows of numbers", {{{kOpen, 4}}, {{kOpen}, long_labels}});
  add("rows of vectors", {{{kOpen, 5, 3}}, {{kOpen}, long_labels}});
  add("of planes", {{{3, 4, kOpen, 2}}, {{3}, long_labels}});
}

}  // namespace ebb::tests
