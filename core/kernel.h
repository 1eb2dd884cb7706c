#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "ebb/core/attributes.h"
#include "ebb/core/shape.h"

namespace ebb {

// One operand as a kernel sees it: contiguous, row-major. data is null for an output that nobody
// wants (an operator's optional output): the kernel then leaves it out.
struct Buffer {
  void* data = nullptr;
  Spec spec;

  template <class T>
  T* as() const noexcept {
    return static_cast<T*>(data);
  }
  std::int64_t elements() const noexcept { return spec.shape.elements(); }
};

// Everything a kernel sees. It never allocates, synchronises or throws: shapes and dtypes were
// checked by the operator's shape rule, memory was declared by its memory rule.
struct KernelContext {
  std::span<const Buffer> inputs;
  std::span<const Buffer> outputs;
  const Attributes* attributes = nullptr;
  void* workspace = nullptr;  // of the declared size, aligned to 64 bytes or more

  template <class T>
  const T& attribute() const noexcept {
    return attributes->get<T>();
  }
};

using Kernel = void (*)(const KernelContext&);

// What a memory rule is asked about: the node's attributes and the shapes it will run with.
struct MemoryQuery {
  std::span<const Spec> inputs;
  std::span<const Spec> outputs;
  const Attributes* attributes = nullptr;

  template <class T>
  const T& attribute() const noexcept {
    return attributes->get<T>();
  }
};

// What a node takes beside its ordinary outputs. reserve_bytes is the size of the operator's
// opaque output (declared as u8[?] by the shape rule), which carries forward results to backward.
struct MemoryNeeds {
  std::size_t workspace_bytes = 0;
  std::size_t reserve_bytes = 0;
};

using MemoryRule = MemoryNeeds (*)(const MemoryQuery&);

// An operator on one kind of device. A null memory rule means: nothing beside the outputs.
struct DeviceKernel {
  Kernel run = nullptr;
  MemoryRule memory = nullptr;
};

}  // namespace ebb
