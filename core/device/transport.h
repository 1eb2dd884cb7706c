// Seam 5: core's interface to the messages between processes. kernels/mpi implements it.
#pragma once
#include <cstddef>
#include <memory>
#include <span>

#include "ebb/core/base/no_copy.h"
#include "ebb/core/kernels/collective.h"

namespace ebb::detail {

// A transfer under way.
class Transfer : NoCopy {
 public:
  virtual ~Transfer() = default;
  // Makes progress. True once memory that it reads or writes is free again.
  virtual bool is_done() = 0;
};

// A group of processes that exchange messages. Calls begin a transfer and return; all ranks begin
// the same ones in the same order. Used by one thread. Throws Error where the library reports one.
class Transport : NoCopy {
 public:
  using Started = std::unique_ptr<Transfer>;

  virtual ~Transport() = default;
  virtual int rank() const noexcept = 0;
  virtual int size() const noexcept = 0;
  // A group of its own with the same ranks, or with those of one color, in their order. Waits for
  // the others. Null for a color below 0.
  virtual std::unique_ptr<Transport> split(int color) = 0;

  // Parts of elements of `size` bytes, one behind the other: `sent` of them go to each rank, and
  // `received` come from each.
  virtual Started exchange(const void* from, std::span<const int> sent, void* to,
                           std::span<const int> received, std::size_t size) = 0;
  // Likewise every rank gets the parts of all; its own lies where it belongs.
  virtual Started gather_in_place(void* data, std::span<const int> parts, std::size_t size) = 0;
  virtual Started broadcast(void* data, int elements, std::size_t size, int root) = 0;
  // Of f32, f64, i32 and i64; sum or max. `from` may be `to`.
  virtual Started all_reduce(const void* from, void* to, int elements, DType dtype,
                             ReduceOp op) = 0;
  virtual Started reduce_scatter(const void* from, void* to, int elements_each, DType dtype,
                                 ReduceOp op) = 0;
};

// Connects the processes of the job; null if no launcher has started this one. Called once, on the
// thread that makes all later calls; the end of the group leaves the job. Throws Error that says
// what is missing.
std::unique_ptr<Transport> connect();

}  // namespace ebb::detail
