// A kernel with what an operator declares beside it: rules for its memory and for what is prepared.
#pragma once
#include "ebb/core/base/index_set.h"
#include "ebb/core/base/reference.h"
#include "ebb/core/kernels/kernel.h"

namespace ebb {

namespace memory {
class CachingAllocator;
struct Profile;
}  // namespace memory

// What a kernel looks up once for its attributes, shapes and dtypes: descriptors, an algorithm, a
// compiled function. Never data: packed weights are a node of their own. It lives as long as what
// was launched with it, and belongs to one thread at a time.
class Prepared : public detail::Counted {
 public:
  virtual ~Prepared() = default;
  // Of host memory, this object included.
  virtual std::size_t bytes() const noexcept = 0;
  // Which of several ways the kernel goes, for the log: "by cuDNN". Null where there is but one.
  virtual const char* way() const noexcept { return nullptr; }
};

// What a memory rule is asked about: the node's attributes and the shapes it will run with.
struct MemoryQuery {
  std::span<const Spec> inputs;
  std::span<const Spec> outputs;
  const Attributes* attributes = nullptr;
  // Inputs that nobody reads afterwards, of those the operator destroys (OpDef::destroys): what the
  // kernel writes over them needs no workspace.
  const IndexSet* destroyed = nullptr;  // null: none
  // Outputs that nobody reads, of those the operator may leave out: they have no data when the
  // kernel runs.
  const IndexSet* unwanted = nullptr;  // null: none
  // What is known of the device, which its twin shares.
  const memory::Profile* profile = nullptr;
  // What a prepare rule may hand to a kernel that is about the device's memory itself
  // (device_figures.h); null where a memory rule is asked, whose answer must not depend on it.
  const memory::CachingAllocator* allocator = nullptr;
  // Where a prepare rule is asked: the stream that the kernel will run in.
  Stream* stream = nullptr;

  bool destroys(std::size_t input) const noexcept { return destroyed && destroyed->has(input); }
  bool wants(std::size_t output) const noexcept { return !unwanted || !unwanted->has(output); }
  template <class T>
  const T& attribute() const noexcept {
    return attributes->get<T>();
  }
};

// What a node takes beside its ordinary outputs: a function of shapes, dtypes, attributes and
// profile, never of data. The workspace may be an upper bound. reserve_bytes is the size of the
// operator's opaque output (declared as u8[?] by the shape rule), which carries forward results to
// backward.
struct MemoryNeeds {
  std::size_t workspace_bytes = 0;
  std::size_t reserve_bytes = 0;
};

using MemoryRule = MemoryNeeds (*)(const MemoryQuery&);

// Makes what run() reads as KernelContext::prepared; asked what the memory rule was asked. Kept
// with a plan, in eager in a bounded cache. Throws Error, OutOfMemory.
using PrepareRule = detail::Ref<Prepared> (*)(const MemoryQuery&);

// An operator on one kind of device. A null memory rule means: nothing beside the outputs; a null
// prepare rule: nothing to look up; a null merged kernel: each application is launched by itself.
struct DeviceKernel {
  Kernel run = nullptr;
  MemoryRule memory = nullptr;
  PrepareRule prepare = nullptr;
  MergedKernel run_merged = nullptr;
  bool can_be_captured = true;  // in a program that is recorded once and replayed
};

}  // namespace ebb
