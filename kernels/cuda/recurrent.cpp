#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/recurrent_operands.h"
#include "ebb/kernels/cuda/lstm_library.h"
#include "ebb/kernels/cuda/recurrent_composed.h"

namespace ebb::cuda {
namespace {

// The prepared state: cuDNN's or the composed form's, the other is null.
struct PreparedRecurrent final : Prepared {
  std::unique_ptr<LibraryLstm> library;
  detail::Ref<PreparedProducts> products;

  std::size_t bytes() const noexcept override {
    return sizeof(*this) + (library != nullptr ? library->bytes() : products->bytes());
  }
  const char* way() const noexcept override {
    return library != nullptr ? "by cuDNN" : "composed of products";
  }
};

const PreparedRecurrent& prepared_for(const KernelContext& context) noexcept {
  return *static_cast<const PreparedRecurrent*>(context.prepared);
}

bool wants_reserve(const MemoryQuery& query) noexcept {
  return query.wants(RecurrentOperands(query.attribute<RecurrentAttributes>()).reserve);
}

}  // namespace

detail::Ref<Prepared> recurrent_prepare(const MemoryQuery& query) {
  auto prepared = detail::make_ref<PreparedRecurrent>();
  prepared->library = find_lstm(query, query.inputs[0], wants_reserve(query));
  if (prepared->library == nullptr) prepared->products = prepare_composed_recurrent(query);
  return prepared;
}

detail::Ref<Prepared> recurrent_backward_prepare(const MemoryQuery& query) {
  auto prepared = detail::make_ref<PreparedRecurrent>();
  prepared->library = find_lstm(query, query.inputs[kRecurrentBackwardX], true);
  if (prepared->library == nullptr) prepared->products = prepare_composed_recurrent_backward(query);
  return prepared;
}

Status recurrent(const KernelContext& context) {
  const PreparedRecurrent& prepared = prepared_for(context);
  return prepared.library != nullptr ? prepared.library->forward(context)
                                     : composed_recurrent(context, *prepared.products);
}

Status recurrent_backward(const KernelContext& context) {
  const PreparedRecurrent& prepared = prepared_for(context);
  return prepared.library != nullptr ? prepared.library->backward(context)
                                     : composed_recurrent_backward(context, *prepared.products);
}

}  // namespace ebb::cuda
