#include <string>

#include "ebb/allocator/error.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/lstm_cudnn_layer.h"
#include "ebb/kernels/cuda/lstm_library.h"
#include "ebb/kernels/cuda/recurrent_gradients.h"
#include "ebb/kernels/cuda/runtime/stream.h"

#if EBB_HAS_CUDNN

namespace ebb::cuda {
namespace {

// cuDNN's layers: the first, and one description for all above it, which are alike.
class Layers {
 public:
  explicit Layers(const RecurrentSizes& size) : first_(size, size.in), other_(size, size.hidden) {}

  bool describe(cudnnHandle_t handle, const RecurrentSizes& size, bool keep) {
    const auto mode = keep ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
    return first_.describe(handle, mode, CudnnLayerBytes(size, 0, keep)) &&
           (size.layers == 1 || other_.describe(handle, mode, CudnnLayerBytes(size, 1, keep)));
  }
  const CudnnLayer& operator[](std::int64_t layer) const noexcept {
    return layer == 0 ? first_ : other_;
  }

 private:
  CudnnLayer first_, other_;
};

template <class T>
Status to_time_major(cudaStream_t stream, const RecurrentSizes& size, const T* from, T* to,
                     std::int64_t width) noexcept {
  return swap_axes(stream, from, to, size.batch, size.time, width);
}
template <class T>
Status from_time_major(cudaStream_t stream, const RecurrentSizes& size, const T* from, T* to,
                       std::int64_t width) noexcept {
  return swap_axes(stream, from, to, size.time, size.batch, width);
}

template <class T>
Status run_forward(const KernelContext& context, const Layers& layers,
                   cudnnHandle_t handle) noexcept {
  const auto& attributes = context.attribute<RecurrentAttributes>();
  const RecurrentSizes size(context.inputs[0].spec, attributes);
  const RecurrentOperands at(attributes);
  const bool keep = context.outputs[3].data != nullptr;
  const CudnnReserve<T> reserve(size, context.outputs[3].data);
  const CudnnForwardSpace<T> space(size, keep, context.workspace);
  const cudaStream_t stream = stream_of(context);
  const auto in = [&](std::size_t index) { return context.inputs[index].as<const T>(); };
  const auto of_layer = [&](const Buffer* states, std::int64_t layer) -> T* {
    return states == nullptr || states->data == nullptr ? nullptr
                                                        : states->as<T>() + layer * size.state();
  };
  const auto state = [&](std::int64_t index) {
    return index < 0 ? nullptr : &context.inputs[static_cast<std::size_t>(index)];
  };
  const auto hidden = [&](std::int64_t layer) {
    return size.is_last(layer) ? space.y : keep ? reserve.hidden(layer) : space.hidden[layer % 2];
  };
  EBB_TRY(to_time_major(stream, size, in(0), space.x, size.in));
  const T* x = space.x;
  for (std::int64_t layer = 0; layer < size.layers; ++layer) {
    if (size.drops(layer)) {
      T* const dropped = keep ? space.hidden[0] : hidden(layer - 1);
      EBB_TRY(drop<T>(stream, size, x, dropped, attributes.dropout,
                      context.inputs[static_cast<std::size_t>(at.draw)].as<const std::int64_t>(),
                      layer, true));
      x = dropped;
    }
    T* const weights = reinterpret_cast<T*>(space.weights);
    EBB_TRY(pack_weights(stream, layers[layer].weights(), size.input(layer), size.hidden,
                         in(at.w(layer)), in(at.r(layer)), in(at.b(layer)), weights));
    EBB_TRY(layers[layer].forward(handle, x, hidden(layer), of_layer(state(at.h0), layer),
                                  of_layer(&context.outputs[1], layer),
                                  of_layer(state(at.c0), layer),
                                  of_layer(&context.outputs[2], layer), weights, space.work,
                                  keep ? reserve.of(layer) : nullptr));
    x = hidden(layer);
  }
  T* const sequence = context.outputs[0].as<T>();
  return sequence == nullptr ? Status{}
                             : from_time_major(stream, size, space.y, sequence, size.hidden);
}

template <class T>
class Backward {
 public:
  Backward(const KernelContext& context, const Layers& layers, cudnnHandle_t handle) noexcept
      : of_(context),
        layers_(layers),
        handle_(handle),
        stream_(stream_of(context)),
        reserve_(of_.size, context.inputs[kRecurrentBackwardReserve].data),
        space_(of_.size, context.destroys(kRecurrentBackwardReserve), context.workspace) {}

  Status run() const noexcept {
    const RecurrentSizes& size = of_.size;
    EBB_TRY(to_time_major(stream_, size, of_.sequence, space_.y, size.hidden));
    T* const dy = d_output(size.layers - 1);
    if (of_.d_sequence == nullptr) {
      EBB_TRY(clear(stream_, dy, static_cast<std::size_t>(size.steps()) * sizeof(T)));
    } else {
      EBB_TRY(to_time_major(stream_, size, of_.d_sequence, dy, size.hidden));
    }
    const std::int64_t lowest = of_.lowest_layer();
    for (std::int64_t layer = size.layers - 1; layer >= lowest; --layer) EBB_TRY(run_layer(layer));
    T* const dx = of_.gradient(0);
    return dx == nullptr ? Status{} : from_time_major(stream_, size, space_.dx, dx, size.in);
  }

 private:
  // The gradient of a layer's output, which is the gradient of the next layer's input.
  T* d_output(std::int64_t layer) const noexcept {
    return layer < 0 ? space_.dx : space_.d_hidden[layer % 2];
  }
  T* output(std::int64_t layer) const noexcept {
    return of_.size.is_last(layer) ? space_.y : reserve_.hidden(layer);
  }

  Status run_layer(std::int64_t layer) const noexcept {
    const RecurrentSizes& size = of_.size;
    const CudnnLayer& as = layers_[layer];
    T* const weights = reinterpret_cast<T*>(space_.weights);
    EBB_TRY(pack_weights(stream_, as.weights(), size.input(layer), size.hidden,
                         of_.in(of_.at.w(layer)), of_.in(of_.at.r(layer)), of_.in(of_.at.b(layer)),
                         weights));
    std::byte* reserve = reserve_.of(layer);
    if (space_.reserve != nullptr) {
      EBB_TRY(copy(stream_, space_.reserve, reserve, CudnnLayerBytes(size, layer, true).reserve));
      reserve = space_.reserve;
    }
    T* const dx = d_output(layer - 1);
    EBB_TRY(as.backward_data(handle_, output(layer), d_output(layer), dx, of_.h0(layer),
                             of_.of_layer(of_.d_hidden, layer),
                             of_.state_gradient(of_.at.h0, layer), of_.c0(layer),
                             of_.of_layer(of_.d_cell, layer), of_.state_gradient(of_.at.c0, layer),
                             weights, space_.work, reserve));
    if (size.drops(layer)) EBB_TRY(of_.drop_layer(stream_, dx, dx, layer, true));
    return weight_gradients(layer, reserve);
  }

  Status weight_gradients(std::int64_t layer, std::byte* reserve) const noexcept {
    const RecurrentSizes& size = of_.size;
    const CudnnLayer& as = layers_[layer];
    T *const dw = of_.gradient(of_.at.w(layer)), *const dr = of_.gradient(of_.at.r(layer)),
             *const db = of_.gradient(of_.at.b(layer));
    if (dw == nullptr && dr == nullptr && db == nullptr) return {};
    const T* x = space_.x;
    if (layer == 0) {
      EBB_TRY(to_time_major(stream_, size, of_.in(0), space_.x, size.in));
    } else if (size.drops(layer)) {
      EBB_TRY(of_.drop_layer(stream_, output(layer - 1), space_.x, layer, true));
    } else {
      x = output(layer - 1);
    }
    EBB_TRY(clear(stream_, space_.d_weights, as.weight_bytes()));
    EBB_TRY(as.backward_weights(handle_, x, of_.h0(layer), output(layer), space_.d_weights,
                                space_.work, reserve));
    return unpack_weights(stream_, as.weights(), size.input(layer), size.hidden,
                          reinterpret_cast<const T*>(space_.d_weights), dw, dr, db);
  }

  const RecurrentGradients<T> of_;
  const Layers& layers_;
  const cudnnHandle_t handle_;
  const cudaStream_t stream_;
  const CudnnReserve<T> reserve_;
  const CudnnBackwardSpace<T> space_;
};

class CudnnLstm final : public LibraryLstm {
 public:
  explicit CudnnLstm(const RecurrentSizes& size) : layers_(size) {}
  bool describe(cudnnHandle_t handle, const RecurrentSizes& size, bool keep) {
    return layers_.describe(handle, size, keep);
  }

  std::size_t bytes() const noexcept override { return sizeof(*this); }

  Status forward(const KernelContext& context) const noexcept override {
    const char* problem = nullptr;
    const cudnnHandle_t handle = cuda_stream(context.stream).cudnn(problem);
    if (handle == nullptr) return Status::refuse(problem);
    return for_floating(context.inputs[0].spec.dtype, [&](auto type) {
      return run_forward<decltype(type)>(context, layers_, handle);
    });
  }
  Status backward(const KernelContext& context) const noexcept override {
    const char* problem = nullptr;
    const cudnnHandle_t handle = cuda_stream(context.stream).cudnn(problem);
    if (handle == nullptr) return Status::refuse(problem);
    return for_floating(context.inputs[kRecurrentBackwardX].spec.dtype, [&](auto type) {
      return Backward<decltype(type)>(context, layers_, handle).run();
    });
  }

 private:
  Layers layers_;
};

}  // namespace

std::unique_ptr<LibraryLstm> find_lstm(const MemoryQuery& query, const Spec& x, bool keep) {
  const RecurrentSizes size(x, query.attribute<RecurrentAttributes>());
  if (!suits_cudnn(size, query.profile)) return nullptr;
  const char* problem = nullptr;
  CudaStream& stream = cuda_stream(query.stream);
  const cudnnHandle_t handle = cudnn() == nullptr ? nullptr : stream.cudnn(problem);
  if (!stream.uses_cudnn(handle != nullptr)) return nullptr;
  if (handle == nullptr)
    throw Error(std::string("[lstm] ") + problem +
                " now, as it did before: it takes memory of its own");
  auto lstm = std::make_unique<CudnnLstm>(size);
  return lstm->describe(handle, size, keep) ? std::move(lstm) : nullptr;
}

}  // namespace ebb::cuda

#else

namespace ebb::cuda {

std::unique_ptr<LibraryLstm> find_lstm(const MemoryQuery&, const Spec&, bool) { return nullptr; }

}  // namespace ebb::cuda

#endif
