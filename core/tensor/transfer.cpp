#include "ebb/core/tensor/transfer.h"

#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

void transfer(const Tensor& from, Runtime& runtime, Stream* stream, void* to) {
  if (runtime.is_simulated()) return;
  const TensorImpl& impl = *from.impl();
  const std::size_t bytes = impl.spec.bytes();
  if (&impl.storage->device().runtime() == &runtime) {
    const Storage::Use use(*impl.storage, stream);
    runtime.copy(stream, to, data(from), bytes);
  } else {
    const HostView values = impl.storage->view(impl.offset, bytes);
    runtime.copy_in(stream, to, values.data(), bytes);
  }
}

}  // namespace ebb::detail
