#include "ebb/optim/detail/written_memory.h"

#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::optim {

// The storage, or in a graph the node that first made the memory: skips views and updates in place.
const void* WrittenMemory::memory_of(const Tensor& tensor) noexcept {
  const ebb::detail::TensorImpl& impl = *tensor.impl();
  if (impl.storage) return impl.storage.get();
  const Node* node = impl.node.get();
  while (node && (node->op->view || !node->op->updates.empty()))
    node = node->inputs[0].producer.get();
  return node;
}

bool WrittenMemory::same(const Tensor& a, const Tensor& b) noexcept {
  const ebb::detail::TensorImpl &x = *a.impl(), &y = *b.impl();
  if (x.storage || y.storage) return x.storage.get() == y.storage.get() && x.offset == y.offset;
  return x.node.get() == y.node.get() && x.output == y.output;
}

}  // namespace ebb::optim
