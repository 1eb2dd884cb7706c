// Kernels, as operators and devices see them. Every file that nvcc compiles reads this header: it
// includes little.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "ebb/core/base/attributes.h"
#include "ebb/core/base/shape.h"
#include "ebb/core/kernels/status.h"

namespace ebb {

class IndexSet;  // core/base/index_set.h
class Prepared;  // core/kernels/device_kernel.h, with the rules that a kernel comes with
struct MemoryQuery;
struct MemoryNeeds;

namespace detail {
template <class T>
class Ref;  // core/base/reference.h
// The product of the sizes; for small kernels, out of line, where compilers make no vectors of it.
std::int64_t product(const Shape& shape) noexcept;
}  // namespace detail

// One operand as a kernel sees it: contiguous, row-major. data is null for an output that nobody
// reads (one that its operator may leave out): the kernel then does without.
struct Buffer {
  void* data = nullptr;
  Spec spec;

  template <class T>
  T* as() const noexcept {
    return static_cast<T*>(data);
  }
  // Nothing is open or too large here: that was found out before there was memory for it.
  std::int64_t elements() const noexcept {
    const Shape& shape = spec.shape;
    if (shape.rank() == 1) return shape.dim(0);
    if (shape.rank() == 2) return shape.dim(0) * shape.dim(1);
    return detail::product(shape);
  }
};

// An order of work on a device: what is put into a stream happens one after the other. Streams go
// on beside each other, except where one waits for another.
class Stream {
 public:
  Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  virtual ~Stream() = default;
};

// Everything a kernel sees. It never allocates, synchronises or throws: shapes and dtypes were
// checked by the operator's shape rule, memory was declared by its memory rule. It puts its work
// into the stream, or does it at once where the device is the host.
struct KernelContext {
  std::span<const Buffer> inputs;
  std::span<const Buffer> outputs;
  const Attributes* attributes = nullptr;
  void* workspace = nullptr;  // of the declared size, aligned to 64 bytes or more
  // Inputs that the kernel may write over, of those its operator destroys: as its memory rule was
  // told, so that the workspace is the one it declared for this.
  const IndexSet* destroyed = nullptr;  // null: none
  const Prepared* prepared = nullptr;   // by the operator's prepare rule, if it has one
  Stream* stream = nullptr;             // the device's

  bool destroys(std::size_t input) const noexcept;
  template <class T>
  const T& attribute() const noexcept {
    return attributes->get<T>();
  }
};

// A function type, which declares kernels by name: KernelFunction sum, mean;
using KernelFunction = Status(const KernelContext&);
using Kernel = KernelFunction*;

struct Launch;
// Runs several applications of a kernel, none of which reads what another writes, as one. It writes
// nothing where it refuses.
using MergedKernel = Status (*)(std::span<const Launch>);

// A kernel and everything it sees. A backend that runs it later copies the context, with the
// buffers, attributes and set of inputs that it refers to, and keeps what was prepared.
struct Launch {
  Kernel run = nullptr;
  KernelContext context;
  const char* name = "";  // the operator's: what is told of a failure that shows later
  MergedKernel run_merged = nullptr;
};

}  // namespace ebb
