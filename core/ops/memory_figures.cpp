#include "ebb/core/ops/memory_figures.h"

#include "ebb/core/kernels/device_figures.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

Tensor read(const OpDef& op, const Operand& after) {
  detail::tensor_of(op, after);
  return detail::apply_to(op, after);
}

Tensor read(const OpDef& op, const Device& device, CallSite site) {
  return std::move(apply_on(device, op, {}, site)[0]);
}

void infer_figure(Inference& inference) { inference.output(DType::i64, {}); }

}  // namespace

Tensor memory::bytes_in_use(const Operand& after) { return read(bytes_in_use_op, after); }
Tensor memory::max_bytes_in_use(const Operand& after) { return read(max_bytes_in_use_op, after); }
Tensor memory::bytes_limit(const Operand& after) { return read(bytes_limit_op, after); }

Tensor memory::bytes_in_use(const Device& device, CallSite site) {
  return read(bytes_in_use_op, device, site);
}
Tensor memory::max_bytes_in_use(const Device& device, CallSite site) {
  return read(max_bytes_in_use_op, device, site);
}
Tensor memory::bytes_limit(const Device& device, CallSite site) {
  return read(bytes_limit_op, device, site);
}

// The tensor to follow is an ordinary input, which the figures wait for though no kernel reads it.
// That places them after it in every order that a graph may choose.

constinit const OpDef bytes_in_use_op{
    .name = "bytes_in_use",
    .infer = infer_figure,
    .stateful = true,
    .stops_gradient = bit(0),
    .cpu = {.run = cpu::bytes_in_use, .prepare = detail::prepare_figures},
    .cuda = {
        .run = cuda::bytes_in_use, .prepare = detail::prepare_figures, .can_be_captured = false}};

constinit const OpDef max_bytes_in_use_op{
    .name = "max_bytes_in_use",
    .infer = infer_figure,
    .stateful = true,
    .stops_gradient = bit(0),
    .cpu = {.run = cpu::max_bytes_in_use, .prepare = detail::prepare_figures},
    .cuda = {.run = cuda::max_bytes_in_use,
             .prepare = detail::prepare_figures,
             .can_be_captured = false}};

constinit const OpDef bytes_limit_op{
    .name = "bytes_limit",
    .infer = infer_figure,
    .stateful = true,
    .stops_gradient = bit(0),
    .cpu = {.run = cpu::bytes_limit, .prepare = detail::prepare_figures},
    .cuda = {
        .run = cuda::bytes_limit, .prepare = detail::prepare_figures, .can_be_captured = false}};

}  // namespace ebb
