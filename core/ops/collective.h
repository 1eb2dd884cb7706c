#pragma once
#include "ebb/core/device/world.h"
#include "ebb/core/kernels/collective.h"
#include "ebb/core/ops/arguments.h"

namespace ebb {

// Operators over the ranks of a world. All ranks call them in the same order, with tensors of one
// shape and dtype on their own devices. Where they do not, every rank throws an Error that says
// what two of them did. In a graph they run in the order in which they were recorded. A tensor, of
// all_gather the result, has at most 2^31 - 1 elements; the error of more is a prediction's, too.
//
// Gradients are those of the sum of all ranks' losses: each rank differentiates its own.
namespace distributed {

// The sum of the ranks' tensors, their mean or their greatest elements, on every rank. Sum and max
// of f32, f64, f16, bf16, i32 and i64, the mean of floating ones; 16 bits are summed in f32 and
// rounded once. The gradient of a mean is the mean of gradients; that of a greatest element is
// shared by the ranks that have it.
Tensor all_reduce(const Operand& x, const World& world, ReduceOp op = ReduceOp::sum);
// The ranks' tensors one behind the other along the leading axis: [n, ..] of each gives
// [size n, ..]. Any dtype.
Tensor all_gather(const Operand& x, const World& world);
// A part of the sum or mean of the ranks' tensors, cut along the leading axis: [size n, ..] gives
// rank k the rows from k n on, [n, ..]. Dtypes as all_reduce. Throws ShapeError where the rows
// cannot be dealt out evenly.
Tensor reduce_scatter(const Operand& x, const World& world, ReduceOp op = ReduceOp::sum);
// The tensor of rank `root`, on every rank. Any dtype.
Tensor broadcast(const Operand& x, const World& world, int root = 0);

// Sends x to the other rank of a world of two, and returns it. Its gradient is what the other rank
// computes for recv(), whatever is made of the result here. Any dtype. Throws Error for a world
// that is not of two ranks, as world.split() makes.
Tensor send(const Operand& x, const World& pair);
// The tensor that the other rank sends, of the shape and dtype of `like`. The gradient goes back to
// that rank's send() where one of `like` is computed, so `like` has to take one:
// zeros(..).with_grad(). Throws as send.
Tensor recv(const Operand& like, const World& pair);

// The mean of what each rank has measured on `rows` samples, weighted by them, on every rank: of a
// metric, say, for EarlyStopping. A rank without rows has no part.
double mean(double value, std::int64_t rows, const World& world, CallSite site = CallSite::here());

}  // namespace distributed

namespace detail {

// Sums a flat tensor over the ranks in place. The first begins, the second waits for it; work
// between the two overlaps. `name` of what is summed is for messages, and the same on every rank.
Tensor begin_total(const Tensor& total, const distributed::World& world, const char* name);
Tensor end_total(const Tensor& total, const distributed::World& world);
// total += the sum of rows part over the ranks in their order, in place; `rows` is an i64 scalar,
// and a rank with none has no part. Where the world shards gradients, total is this rank's share.
Tensor total_in_order(const Tensor& total, const Tensor& part, const Tensor& rows,
                      const distributed::World& world, const char* name);
// This rank's share of x, flat and in x's memory: share_of() its elements.
Tensor share(const Tensor& x, const distributed::World& world);
// Writes every rank's share of x into x. Likewise in two halves.
Tensor begin_gather(const Tensor& x, const distributed::World& world, const char* name);
Tensor end_gather(const Tensor& x, const distributed::World& world);
// Rows of this rank in the batch that is in use, of a loader over the world's ranks; 1 without one.
// An i64 scalar, on the device of `after`.
Tensor rows_in_use(const Tensor& after, const distributed::World& world);

}  // namespace detail

// gather_share_op: of a rank's share the whole tensor, CollectiveAttributes::whole. whole_op: the
// same in a graph, as a view of the share that a program gathers where it is used.
extern const OpDef all_reduce_op, all_reduce_max_op, all_gather_op, reduce_scatter_op, broadcast_op,
    broadcast_backward_op, send_op, recv_op, begin_total_op, end_total_op, total_in_order_op,
    begin_gather_op, end_gather_op, gather_share_op, whole_op, rows_in_use_op;

}  // namespace ebb
