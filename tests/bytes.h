// Bytes of a tensor on any device.
#pragma once
#include <cstddef>
#include <vector>

#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::tests {

inline std::vector<std::byte> bytes_of(const Tensor& tensor) {
  std::vector<std::byte> bytes(tensor.bytes());
  const detail::TensorImpl& impl = *tensor.impl();
  impl.storage->copy_out(impl.offset, bytes.data(), bytes.size());
  return bytes;
}

}  // namespace ebb::tests
