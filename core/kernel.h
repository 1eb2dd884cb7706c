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

// A set of inputs or outputs, as bits. What comes after the 32nd is in no set.
using Mask = std::uint32_t;
constexpr Mask bit(int i) noexcept { return i < 32 ? Mask{1} << i : 0; }
inline constexpr Mask kAll = ~Mask{0};

// Everything a kernel sees. It never allocates, synchronises or throws: shapes and dtypes were
// checked by the operator's shape rule, memory was declared by its memory rule.
struct KernelContext {
  std::span<const Buffer> inputs;
  std::span<const Buffer> outputs;
  const Attributes* attributes = nullptr;
  void* workspace = nullptr;  // of the declared size, aligned to 64 bytes or more
  // Inputs that the kernel may write over, of those its operator destroys: as its memory rule was
  // told, so that the workspace is the one it declared for this.
  Mask destroyed = 0;

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
  // Inputs that nobody reads afterwards, of those the operator destroys (OpDef::destroys): what the
  // kernel writes over them needs no workspace.
  Mask destroyed = 0;
  // Outputs that somebody reads. The others have no data when the kernel runs.
  Mask wanted = kAll;

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
