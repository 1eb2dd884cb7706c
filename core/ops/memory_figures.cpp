#include "ebb/core/ops/memory_figures.h"

#include "ebb/core/kernels/device_figures.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

Tensor read(const OpDef& op, const Device& device, CallSite site) {
  return std::move(apply_on(device, op, {}, site)[0]);
}

// The tensor to follow is an ordinary input, which the figures wait for though no kernel reads it.
// That places them after it in every order that a graph may choose.
constexpr OpDef figure(const char* name, PrepareRule prepare) {
  return {.name = name,
          .infer = [](Inference& inference) { inference.output(DType::i64, {}); },
          .stateful = true,
          .stops_gradient = bit(0),
          .cpu = {.run = cpu::device_figure, .prepare = prepare},
          .cuda = {.run = cuda::device_figure, .prepare = prepare, .can_be_captured = false}};
}

}  // namespace

Tensor memory::bytes_in_use(const Operand& after) {
  return detail::apply_to(bytes_in_use_op, after);
}
Tensor memory::max_bytes_in_use(const Operand& after) {
  return detail::apply_to(max_bytes_in_use_op, after);
}
Tensor memory::bytes_limit(const Operand& after) { return detail::apply_to(bytes_limit_op, after); }

Tensor memory::bytes_in_use(const Device& device, CallSite site) {
  return read(bytes_in_use_op, device, site);
}
Tensor memory::max_bytes_in_use(const Device& device, CallSite site) {
  return read(max_bytes_in_use_op, device, site);
}
Tensor memory::bytes_limit(const Device& device, CallSite site) {
  return read(bytes_limit_op, device, site);
}

constinit const OpDef bytes_in_use_op = figure("bytes_in_use", detail::prepare_bytes_in_use);
constinit const OpDef max_bytes_in_use_op =
    figure("max_bytes_in_use", detail::prepare_max_bytes_in_use);
constinit const OpDef bytes_limit_op = figure("bytes_limit", detail::prepare_bytes_limit);

}  // namespace ebb
