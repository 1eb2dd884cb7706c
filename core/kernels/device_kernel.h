// A kernel on a device, with the rules for its memory and for its preparation.
#pragma once
#include "ebb/core/base/index_set.h"
#include "ebb/core/base/reference.h"
#include "ebb/core/kernels/kernel.h"

namespace ebb {

namespace memory {
class CachingAllocator;
struct Profile;
}  // namespace memory

// The things that a kernel looks up once for its attributes, shapes and dtypes: descriptors, an
// algorithm, a compiled function. Never data: packed weights are a node of their own. It lives as
// long as the launches that use it, and belongs to one thread at a time.
class Prepared : public detail::Counted {
 public:
  virtual ~Prepared() = default;
  // Bytes of host memory, this object included.
  virtual std::size_t bytes() const noexcept = 0;
  // The way that the kernel takes, for the log: "by cuDNN". Null where there is but one.
  virtual const char* way() const noexcept { return nullptr; }
};

// The question to a memory rule: a node's attributes and the shapes it will run with.
struct MemoryQuery {
  std::span<const Spec> inputs;
  std::span<const Spec> outputs;
  const Attributes* attributes = nullptr;
  // Inputs that nobody reads afterwards, among those the operator destroys (OpDef::destroys). The
  // kernel may write over them in place of workspace.
  const IndexSet* destroyed = nullptr;  // null: none
  // Outputs that nobody reads, among those the operator may leave out. They have no data when the
  // kernel runs.
  const IndexSet* unwanted = nullptr;  // null: none
  // The facts of the device, which its simulated twin shares.
  const memory::Profile* profile = nullptr;
  // The device's allocator, which a prepare rule may hand to a kernel about memory itself
  // (device_figures.h). Null for memory rules, whose answer must not depend on it.
  const memory::CachingAllocator* allocator = nullptr;
  // For prepare rules: the stream that the kernel will run in, and the bytes of workspace that the
  // memory rule has declared.
  Stream* stream = nullptr;
  std::size_t workspace_bytes = 0;

  bool destroys(std::size_t input) const noexcept { return destroyed && destroyed->has(input); }
  bool wants(std::size_t output) const noexcept { return !unwanted || !unwanted->has(output); }
  template <class T>
  const T& attribute() const noexcept {
    return attributes->get<T>();
  }
};

// The memory of a node beside its ordinary outputs: a function of shapes, dtypes, attributes and
// profile, never of data. The workspace may be an upper bound. reserve_bytes is the size of the
// operator's opaque output (declared as u8[?] by the shape rule), which carries forward results to
// backward.
struct MemoryNeeds {
  std::size_t workspace_bytes = 0;
  std::size_t reserve_bytes = 0;
};

using MemoryRule = MemoryNeeds (*)(const MemoryQuery&);

// Makes the object that run() reads as KernelContext::prepared, from the memory rule's query. It is
// kept with a plan, or in eager mode in a bounded cache. Throws Error, OutOfMemory.
using PrepareRule = detail::Ref<Prepared> (*)(const MemoryQuery&);

// An operator on one kind of device. Null memory rule: it needs nothing beside the outputs. Null
// prepare rule: there is nothing to look up. Null merged kernel: each application is launched by
// itself.
struct DeviceKernel {
  Kernel run = nullptr;
  MemoryRule memory = nullptr;
  PrepareRule prepare = nullptr;
  MergedKernel run_merged = nullptr;
  bool can_be_captured = true;  // into a program that is recorded once and replayed
  Kernel simulated = nullptr;   // runs on a simulated device, on buffers without values
};

namespace cuda {
#define EBB_KERNEL(name) KernelFunction name;
#define EBB_SIZED(name) \
  EBB_KERNEL(name)      \
  MemoryFunction name##_memory;
#define EBB_PREPARED(name) \
  EBB_SIZED(name)          \
  PrepareFunction name##_prepare;
#include "ebb/core/kernels/kernels.inc"
}  // namespace cuda

}  // namespace ebb
