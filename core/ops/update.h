#pragma once
#include <span>

#include "ebb/core/kernels/update.h"
#include "ebb/core/ops/arguments.h"

namespace ebb {

// Writes `value` into target's memory. Shape and dtype must be equal; a number is converted.
// Returns target in its new version. In a graph, lines above read the old version and lines below
// the new one; the update runs when its result is fetched or used. Throws ShapeError, and Error for
// a target that is an unnamed copy (x[i], chunk(x, 2, 1)[0]): x would not change.
Tensor assign(const Operand& target, const Operand& value);
// Adds `value` to target in its memory. Otherwise as assign.
Tensor add_assign(const Operand& target, const Operand& value);  // floating

struct AssignSliceOptions {
  int axis = 0;  // negative: from the end
};

// Writes `value` into the part of x that begins at an index of an axis and is as long there as
// value; all other sizes are equal. No other element of x is read or moved. `begin` is a number,
// negative from the end, or an i64 scalar, from the front. Any dtype, x's. Returns x in its new
// version; otherwise as assign. Throws ShapeError where the part does not fit into the axis; a
// tensor `begin` out of range is an Error on the CPU, and on a GPU nothing is written.
Tensor assign_slice(const Operand& x, const Operand& begin, const Operand& value,
                    const AssignSliceOptions& options = {});

namespace detail {

// The parts of an optimizer's step beside its rule. Updates return their first operand in the new
// version.

// n += value (an i64 scalar); if `ready` (bool scalar) is defined, only where it holds.
Tensor increment(const Tensor& n, std::int64_t value, const Tensor& ready = {},
                 CallSite site = CallSite::here());
// n += rows, both i64 scalars.
Tensor add_count(const Tensor& n, const Tensor& rows, CallSite site = CallSite::here());
// n >= value, a bool scalar. Updates nothing.
Tensor at_least(const Tensor& n, std::int64_t value, CallSite site = CallSite::here());
// target = value where `ready` (bool scalar); any one shape and dtype.
Tensor assign_if(const Tensor& target, const Tensor& value, const Tensor& ready,
                 CallSite site = CallSite::here());
// a = 0 where `ready`.
Tensor clear_if(const Tensor& a, const Tensor& ready, CallSite site = CallSite::here());
// loss itself, computed after any number of updates.
Tensor with_updates(const Tensor& loss, std::span<const Tensor> updates,
                    CallSite site = CallSite::here());

}  // namespace detail

extern const OpDef assign_op, add_assign_op, assign_slice_op, assign_slice_at_op, assign_if_op,
    increment_op, add_count_op, at_least_op, clear_if_op, with_updates_op;

}  // namespace ebb
