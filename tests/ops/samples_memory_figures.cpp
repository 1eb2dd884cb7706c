#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/memory_figures.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

// The figure itself is another one whenever it is read (tests/ops/memory_figures.cpp): that it is
// not 0 is what both modes agree on.
Sample sample(const OpDef& op, Tensor (*figure)(const Operand&)) {
  return {.op = &op,
          .name = op.name,
          .inputs = {{{kOpen, 2}}},
          .call = [figure](const Tensors& in) -> Tensors {
            return {cast(figure(in[0]), DType::boolean)};
          },
          .order = 0,
          .any_dtype = true,
          .any_shape = true};
}

}  // namespace

void add_memory_figure_samples(std::vector<Sample>& samples) {
  samples.push_back(sample(bytes_in_use_op, memory::bytes_in_use));
  samples.push_back(sample(max_bytes_in_use_op, memory::max_bytes_in_use));
  samples.push_back(sample(bytes_limit_op, memory::bytes_limit));
}

}  // namespace ebb::tests
