#include "ebb/core/kernels/lstm.h"

#include "ebb/kernels/cuda/lstm_composed.h"
#include "ebb/kernels/cuda/lstm_library.h"

namespace ebb::cuda {
namespace {

// One of the two.
struct PreparedLstm final : Prepared {
  std::unique_ptr<LibraryLstm> library;
  detail::Ref<PreparedProducts> products;

  std::size_t bytes() const noexcept override {
    return sizeof(*this) + (library != nullptr ? library->bytes() : products->bytes());
  }
  const char* way() const noexcept override {
    return library != nullptr ? "by cuDNN" : "composed of products";
  }
};

const PreparedLstm& prepared_for(const KernelContext& context) noexcept {
  return *static_cast<const PreparedLstm*>(context.prepared);
}

}  // namespace

detail::Ref<Prepared> lstm_prepare(const MemoryQuery& query) {
  auto prepared = detail::make_ref<PreparedLstm>();
  prepared->library = find_lstm(query, query.inputs[0], query.wants(3));
  if (prepared->library == nullptr) prepared->products = prepare_composed_lstm(query);
  return prepared;
}

detail::Ref<Prepared> lstm_backward_prepare(const MemoryQuery& query) {
  auto prepared = detail::make_ref<PreparedLstm>();
  prepared->library = find_lstm(query, query.inputs[kLstmBackwardX], true);
  if (prepared->library == nullptr) prepared->products = prepare_composed_lstm_backward(query);
  return prepared;
}

Status lstm(const KernelContext& context) {
  const PreparedLstm& prepared = prepared_for(context);
  return prepared.library != nullptr ? prepared.library->forward(context)
                                     : composed_lstm(context, *prepared.products);
}

Status lstm_backward(const KernelContext& context) {
  const PreparedLstm& prepared = prepared_for(context);
  return prepared.library != nullptr ? prepared.library->backward(context)
                                     : composed_lstm_backward(context, *prepared.products);
}

}  // namespace ebb::cuda
