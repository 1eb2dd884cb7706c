#pragma once
#include <span>

#include "ebb/core/kernels/update.h"
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

// Writes value into target's memory, or adds it there; shape and dtype must be equal, a number is
// converted. Returns target in its new version. In a graph, lines above read the old version and
// lines below the new one; the update runs when its result is fetched or used. Throws ShapeError.
Tensor assign(const Operand& target, const Operand& value);
Tensor add_assign(const Operand& target, const Operand& value);  // f32, f64

namespace detail {

// The vocabulary of optim/: updates in place (core/kernels/update.h has the formulas). Each returns
// its first operand in the new version. A gated update does nothing unless `ready` (bool scalar),
// and divides the gradient by `count` (i64 scalar). rate is an f64 scalar, step and n i64 scalars.
struct Gate {
  Tensor ready = {};  // neither: not gated
  Tensor count = {};
};

// p -= rate g, through `velocity` where attributes.momentum > 0 (else it is not looked at).
// attributes.gated is set from the gate here, as in the others.
Tensor sgd_update(const Tensor& p, const Tensor& velocity, const Tensor& g, const Tensor& rate,
                  SgdAttributes attributes, const Gate& gate, CallSite site);
// step counts this one already.
Tensor adam_update(const Tensor& p, const Tensor& m, const Tensor& v, const Tensor& g,
                   const Tensor& step, const Tensor& rate, AdamAttributes attributes,
                   const Gate& gate, CallSite site);
// The learning rate of step + 1, an f64 scalar. Updates nothing.
Tensor schedule(const Tensor& step, const ScheduleAttributes& attributes, CallSite site);
// n += value; if `ready` is defined, only where it holds.
Tensor increment(const Tensor& n, std::int64_t value, const Tensor& ready, CallSite site);
// n += rows.
Tensor add_count(const Tensor& n, const Tensor& rows, CallSite site);
// n >= value, a bool scalar. Updates nothing.
Tensor at_least(const Tensor& n, std::int64_t value, CallSite site);
// sum += rows g.
Tensor accumulate(const Tensor& sum, const Tensor& g, const Tensor& rows, CallSite site);
// target = value where `ready` (bool scalar); any one shape and dtype.
Tensor assign_if(const Tensor& target, const Tensor& value, const Tensor& ready, CallSite site);
// a = 0 where `ready`.
Tensor clear_if(const Tensor& a, const Tensor& ready, CallSite site);
// loss itself, computed after any number of updates.
Tensor with_updates(const Tensor& loss, std::span<const Tensor> updates, CallSite site);

}  // namespace detail

extern const OpDef assign_op, add_assign_op, assign_if_op, sgd_update_op, sgd_momentum_update_op,
    adam_update_op, schedule_op, increment_op, add_count_op, at_least_op, accumulate_op,
    clear_if_op, with_updates_op;

}  // namespace ebb
