#include <algorithm>

#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/memory_figures.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {
namespace {

// A memory figure differs each time it is read, so the modes are compared only in whether it is 0.
// tests/graph/memory_figures.cpp checks the figure itself.
Sample sample(const OpDef& op, Tensor (*figure)(const Operand&)) {
  Sample sample =
      moving_sample(op, "", {{{kOpen, 2}}}, EBB_CALL(cast(figure(in[0]), DType::boolean)), true);
  sample.order = kNoGradient;
  return sample;
}

// Reads the host's figure while the operator's result is still alive.
template <class Read>
std::function<Arrays(const Application&)> figure(const Read& read) {
  return [read](const Application&) -> Arrays {
    Array out{Shape{}};
    out[0] = static_cast<double>(read(memory::stats(Device::cpu())));
    return {out};
  };
}

}  // namespace

void memory_figure_family(std::vector<Sample>& samples, References& references, DType) {
  samples.push_back(sample(bytes_in_use_op, memory::bytes_in_use));
  samples.push_back(sample(max_bytes_in_use_op, memory::max_bytes_in_use));
  samples.push_back(sample(bytes_limit_op, memory::bytes_limit));

  const auto add = [&](const OpDef& op, auto read) { references.add(op, figure(read)); };
  add(bytes_in_use_op, [](const memory::Stats& s) { return s.allocated.current; });
  add(max_bytes_in_use_op, [](const memory::Stats& s) { return s.allocated.peak; });
  add(bytes_limit_op, [](const memory::Stats& s) { return std::min(s.limit, s.device_total); });
}

}  // namespace ebb::tests
