#include "ebb/core/kernels/layout.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"

namespace ebb {
namespace {

void infer_broadcast_to(Inference& inference) {
  const Shape& from = inference.inputs[0].shape;
  Shape to = inference.attribute<detail::AskedShape>().shape();
  const auto fail = [&] { inference.fail("does not broadcast to the shape " + to.to_string()); };
  if (from.rank() > to.rank()) fail();
  for (int back = 1; back <= to.rank(); ++back) {
    const bool is_new = back > from.rank();
    const std::int64_t size = is_new ? 1 : from.dim(-back);
    if (is_new && to.dim(-back) == -1) fail();
    if (size != 1 && !detail::may_equal(size, to.dim(-back))) fail();
    if (to.dim(-back) == -1) to.set(-back, size);
  }
  inference.output(inference.inputs[0].dtype, to);
}

// x repeated `times` times along an axis, element by element (`behind`) or as a whole: a new axis
// of that size behind or before this one, merged with it.
Tensor repeated(const char* function, const Operand& x, std::int64_t times, int axis, bool behind) {
  const detail::CalledScope called(function);
  axis = detail::axis_of(broadcast_to_op, axis, x);
  if (times < 0)
    detail::fail(broadcast_to_op, "takes no tensor " + std::to_string(times) + " times", x.tensor(),
                 x.site());
  const CallSite site = x.site();
  const int place = behind ? axis + 1 : axis;
  const Tensor wider = unsqueeze(x, place);
  Shape shape;
  for (int i = 0; i < wider.rank(); ++i) shape.push_back(i == place ? times : -1);
  return detail::merge_axes({broadcast_to({wider, site}, shape), site}, axis);
}

}  // namespace

Tensor broadcast_to(const Operand& x, const Shape& shape) {
  if (detail::tensor_of(broadcast_to_op, x).shape() == shape && !shape.is_open()) return x.take();
  return detail::apply_to(broadcast_to_op, x, detail::AskedShape(shape));
}

Tensor broadcast_to(const Operand& x, std::initializer_list<std::int64_t> shape) {
  return broadcast_to(x, detail::shape_of("broadcast_to", shape, x.site()));
}

Tensor tile(const Operand& x, std::int64_t times, int axis) {
  return repeated("tile", x, times, axis, false);
}

Tensor repeat(const Operand& x, std::int64_t times, int axis) {
  return repeated("repeat", x, times, axis, true);
}

constinit const OpDef broadcast_to_op{
    .name = "broadcast_to",
    .infer = infer_broadcast_to,
    .gradient = [](const GradientContext& g) -> Tensors { return {sum_like(g.dy(), g.x(0))}; },
    .selects = true,
    .is_identity = detail::keeps_shape,
    .cpu = {cpu::broadcast},
    .cuda = {cuda::broadcast}};

}  // namespace ebb
