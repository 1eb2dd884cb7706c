// Kernels, as operators and devices see them. Every file that nvcc compiles reads this header, so
// it includes little.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "ebb/core/base/attributes.h"
#include "ebb/core/base/no_copy.h"
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
// The product of the sizes of axes [begin, end): 0 where a size is 0, else kOpen where one is open.
// Out of line for small kernels, so that compilers do not vectorise it.
std::int64_t product(const Shape& shape, int begin, int end) noexcept;
}  // namespace detail

// One operand as a kernel sees it: contiguous, row-major. data is null for an output that nobody
// reads and that its operator may leave out; the kernel then does not write it.
struct Buffer {
  void* data = nullptr;
  Spec spec;

  template <class T>
  T* as() const noexcept {
    return static_cast<T*>(data);
  }
  // No size is open or too large here: that was checked before memory was allocated.
  std::int64_t elements() const noexcept {
    const Shape& shape = spec.shape;
    if (shape.rank() == 1) return shape.dim(0);
    if (shape.rank() == 2) return shape.dim(0) * shape.dim(1);
    return detail::product(shape, 0, shape.rank());
  }
};

// A queue of work on a device: its work runs one after the other. Streams run beside each other,
// except where one waits for another.
class Stream : NoCopy {
 public:
  virtual ~Stream() = default;
};

// Everything a kernel sees. It never allocates, synchronises or throws: the operator's shape rule
// has checked shapes and dtypes, its memory rule has declared memory. It puts its work into the
// stream, or does it at once on the host.
struct KernelContext {
  std::span<const Buffer> inputs;
  std::span<const Buffer> outputs;
  const Attributes* attributes = nullptr;
  void* workspace = nullptr;  // of the declared size; aligned to at least 64 bytes
  // Inputs that the kernel may write over, among those its operator destroys. The memory rule was
  // told the same set, and declared the workspace for it.
  const IndexSet* destroyed = nullptr;  // null: none
  const Prepared* prepared = nullptr;   // by the operator's prepare rule, if it has one
  Stream* stream = nullptr;             // the device's

  bool destroys(std::size_t input) const noexcept;
  template <class T>
  const T& attribute() const noexcept {
    return attributes->get<T>();
  }
};

// Function types, which declare kernels and their rules by name: KernelFunction sum, mean;
using KernelFunction = Status(const KernelContext&);
using MemoryFunction = MemoryNeeds(const MemoryQuery&);
using PrepareFunction = detail::Ref<Prepared>(const MemoryQuery&);
using Kernel = KernelFunction*;

struct Launch;
// Runs several applications of a kernel as one, none of which reads what another writes. It writes
// nothing where it refuses.
using MergedKernel = Status (*)(std::span<const Launch>);

// A kernel and its context. A backend that runs it later copies the context, with the buffers,
// attributes and set of inputs that it refers to, and keeps the prepared object.
struct Launch {
  Kernel run = nullptr;
  KernelContext context;
  const char* name = "";  // the operator's, for an error that shows later
  MergedKernel run_merged = nullptr;
};

}  // namespace ebb
