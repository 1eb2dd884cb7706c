#pragma once
#include "ebb/core/ops/arguments.h"

namespace ebb {

// Indices have any shape, are i32 or i64, and count from 0. An index out of range is an Error on
// the CPU, thrown before a run that is fed with it has written anything. On a GPU it chooses NaN (0
// for dtypes that are not floating) and no gradient goes through it, unless check_labels or
// DetectNan ask. Indices that a mask leaves out are made valid first: where(valid, indices, 0).
struct IndexOptions {
  // On a GPU the host waits for the indices and reads them, and a program is not captured.
  bool check_labels = false;
};

// The parts of x at `indices` along `axis` (negative: from the end). The axes of the indices take
// the place of that axis: x [a, n, b] and indices [k, l] give [a, k, l, b]. Any dtype. TensorFlow's
// gather, NumPy's take; with one axis of indices PyTorch's index_select. A part that is chosen
// several times has the sum of its gradients, added in the order of the indices, on every device.
// Throws ShapeError.
Tensor index_select(const Operand& x, const Operand& indices, int axis = 0,
                    const IndexOptions& options = {});
// The rows of a table [rows, features] at `indices`: [..., features]. Throws ShapeError.
Tensor embedding(const Operand& table, const Operand& indices, const IndexOptions& options = {});
// x with `values` added to its parts at `indices` along `axis`. The values have the shape of
// index_select(x, indices, axis). Floating, of one dtype. Throws ShapeError.
Tensor index_add(const Operand& x, const Operand& indices, const Operand& values, int axis = 0,
                 const IndexOptions& options = {});

// The elements of x at `indices` along `axis` (negative: from the end), y[o, k, i] = x[o,
// indices[o, k, i], i]. The indices have x's sizes along the other axes. Any dtype. PyTorch's
// gather, NumPy's take_along_axis. Throws ShapeError.
Tensor gather(const Operand& x, int axis, const Operand& indices, const IndexOptions& options = {});
// The element of each row of x [.., n] at `indices` [..], of one axis less: x[.., indices[..]].
// Any dtype. Throws ShapeError.
Tensor pick(const Operand& x, const Operand& indices, const IndexOptions& options = {});
// x with `updates` added to its elements at `indices` along `axis`. Updates have the shape of the
// indices and x's dtype, a floating one. Several updates of one element are added in the order of
// the indices. Throws ShapeError.
Tensor scatter_add(const Operand& x, int axis, const Operand& indices, const Operand& updates,
                   const IndexOptions& options = {});

// indices [...] as rows [..., classes], with 1 at the index and 0 elsewhere. A row is all 0 for an
// index out of range. Of a floating dtype. Has no derivative. Throws ShapeError.
Tensor one_hot(const Operand& indices, std::int64_t classes, DType dtype = DType::f32);

extern const OpDef index_select_op, index_select_backward_op, gather_op, gather_backward_op,
    one_hot_op;

}  // namespace ebb
