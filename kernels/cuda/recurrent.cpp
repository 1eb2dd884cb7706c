#include "ebb/kernels/cuda/recurrent_form.h"

namespace ebb::cuda {

detail::Ref<Prepared> recurrent_prepare(const MemoryQuery& query) {
  if (detail::Ref<RecurrentForm> library = find_lstm(query, false)) return library;
  return compose_recurrent(query);
}

detail::Ref<Prepared> recurrent_backward_prepare(const MemoryQuery& query) {
  if (detail::Ref<RecurrentForm> library = find_lstm(query, true)) return library;
  return compose_recurrent_backward(query);
}

Status recurrent(const KernelContext& context) {
  return static_cast<const RecurrentForm*>(context.prepared)->run(context);
}

Status recurrent_backward(const KernelContext& context) {
  return static_cast<const RecurrentForm*>(context.prepared)->run(context);
}

}  // namespace ebb::cuda
