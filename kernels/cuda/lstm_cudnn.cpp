#include <string>

#include "ebb/allocator/error.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/lstm_cudnn_layer.h"
#include "ebb/kernels/cuda/recurrent_call.h"
#include "ebb/kernels/cuda/recurrent_form.h"
#include "ebb/kernels/cuda/runtime/stream.h"
#include "ebb/kernels/cuda/strided_copy.h"

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

// to[inner, outer, width] = from[outer, inner, width].
template <class T>
Status swap_axes(cudaStream_t stream, const T* from, T* to, std::int64_t outer, std::int64_t inner,
                 std::int64_t width) noexcept {
  if (outer * inner * width == 0) return {};
  constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
  StridedWalk walk(sizeof(T));
  walk.add(width, kSize);
  walk.add(outer, inner * width * kSize);
  walk.add(inner, width * kSize);
  return strided_copy(stream, from, to, walk);
}
template <class T>
Status to_time_major(const RecurrentCall<T>& of, const T* from, T* to,
                     std::int64_t width) noexcept {
  return swap_axes(stream_of(of.context), from, to, of.size.batch, of.size.time, width);
}
template <class T>
Status from_time_major(const RecurrentCall<T>& of, const T* from, T* to,
                       std::int64_t width) noexcept {
  return swap_axes(stream_of(of.context), from, to, of.size.time, of.size.batch, width);
}

// Packs a layer's W [in, 4 hidden], R [hidden, 4 hidden], b [4 hidden]; the second biases become
// zeros.
template <class T>
Status pack_weights(const RecurrentCall<T>& of, std::int64_t layer, const CudnnWeights& at,
                    std::byte* space) noexcept {
  const RecurrentSizes& size = of.size;
  const std::size_t bias_bytes = static_cast<std::size_t>(size.gates()) * sizeof(T);
  T* const packed = reinterpret_cast<T*>(space);
  EBB_TRY(swap_axes(stream_of(of.context), of.in(of.at.w(layer)), packed + at.w, size.input(layer),
                    size.gates(), 1));
  EBB_TRY(swap_axes(stream_of(of.context), of.in(of.at.r(layer)), packed + at.r, size.hidden,
                    size.gates(), 1));
  EBB_TRY(copy(stream_of(of.context), packed + at.b, of.in(of.at.b(layer)), bias_bytes));
  return clear(stream_of(of.context), packed + at.second_b, bias_bytes);
}

template <class T>
Status run_forward(const KernelContext& context, const Layers& layers,
                   cudnnHandle_t handle) noexcept {
  const RecurrentCall<T> of(context);
  const RecurrentSizes& size = of.size;
  const bool keep = context.outputs[3].data != nullptr;
  const CudnnReserve<T> reserve(size, context.outputs[3].data);
  const CudnnForwardSpace<T> space(size, keep, context.workspace);
  const auto hidden = [&](std::int64_t layer) {
    return size.is_last(layer) ? space.y : keep ? reserve.hidden(layer) : space.hidden[layer % 2];
  };
  EBB_TRY(to_time_major(of, of.in(0), space.x, size.in));
  const T* x = space.x;
  for (std::int64_t layer = 0; layer < size.layers; ++layer) {
    if (size.drops(layer)) {
      T* const dropped = keep ? space.hidden[0] : hidden(layer - 1);
      EBB_TRY(drop_layer(of, x, dropped, layer, true));
      x = dropped;
    }
    EBB_TRY(pack_weights(of, layer, layers[layer].weights(), space.weights));
    EBB_TRY(layers[layer].forward(handle, x, hidden(layer), of.h0(layer), of.last(1, layer),
                                  of.c0(layer), of.last(2, layer), space.weights, space.work,
                                  keep ? reserve.of(layer) : nullptr));
    x = hidden(layer);
  }
  T* const sequence = context.outputs[0].as<T>();
  return sequence == nullptr ? Status{} : from_time_major(of, space.y, sequence, size.hidden);
}

template <class T>
class Backward {
 public:
  Backward(const KernelContext& context, const Layers& layers, cudnnHandle_t handle) noexcept
      : of_(context),
        layers_(layers),
        handle_(handle),
        reserve_(of_.size, context.inputs[kRecurrentBackwardReserve].data),
        space_(of_.size, context.destroys(kRecurrentBackwardReserve), context.workspace) {}

  Status run() const noexcept {
    const RecurrentSizes& size = of_.size;
    EBB_TRY(to_time_major<T>(of_, of_.sequence, space_.y, size.hidden));
    T* const dy = d_output(size.layers - 1);
    if (of_.d_sequence == nullptr) {
      EBB_TRY(
          clear(stream_of(of_.context), dy, static_cast<std::size_t>(size.steps()) * sizeof(T)));
    } else {
      EBB_TRY(to_time_major<T>(of_, of_.d_sequence, dy, size.hidden));
    }
    const std::int64_t lowest = of_.lowest_layer();
    for (std::int64_t layer = size.layers - 1; layer >= lowest; --layer) EBB_TRY(run_layer(layer));
    T* const dx = of_.gradient(0);
    return dx == nullptr ? Status{} : from_time_major<T>(of_, space_.dx, dx, size.in);
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
    EBB_TRY(pack_weights<T>(of_, layer, as.weights(), space_.weights));
    std::byte* reserve = reserve_.of(layer);
    if (space_.reserve != nullptr) {
      EBB_TRY(copy(stream_of(of_.context), space_.reserve, reserve,
                   CudnnLayerBytes(size, layer, true).reserve));
      reserve = space_.reserve;
    }
    T* const dx = d_output(layer - 1);
    EBB_TRY(as.backward_data(handle_, output(layer), d_output(layer), dx, of_.h0(layer),
                             of_.of_layer(of_.d_hidden, layer),
                             of_.state_gradient(of_.at.h0, layer), of_.c0(layer),
                             of_.of_layer(of_.d_cell, layer), of_.state_gradient(of_.at.c0, layer),
                             space_.weights, space_.work, reserve));
    if (size.drops(layer)) EBB_TRY(drop_layer(of_, dx, dx, layer, true));
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
      EBB_TRY(to_time_major<T>(of_, of_.in(0), space_.x, size.in));
    } else if (size.drops(layer)) {
      EBB_TRY(drop_layer(of_, output(layer - 1), space_.x, layer, true));
    } else {
      x = output(layer - 1);
    }
    EBB_TRY(clear(stream_of(of_.context), space_.d_weights, as.weight_bytes()));
    EBB_TRY(as.backward_weights(handle_, x, of_.h0(layer), output(layer), space_.d_weights,
                                space_.work, reserve));
    const CudnnWeights& at = as.weights();
    const T* const packed = reinterpret_cast<const T*>(space_.d_weights);
    if (dw != nullptr)
      EBB_TRY(
          swap_axes(stream_of(of_.context), packed + at.w, dw, size.gates(), size.input(layer), 1));
    if (dr != nullptr)
      EBB_TRY(swap_axes(stream_of(of_.context), packed + at.r, dr, size.gates(), size.hidden, 1));
    return copy(stream_of(of_.context), db, packed + at.b,
                static_cast<std::size_t>(size.gates()) * sizeof(T));
  }

  const RecurrentBackwardCall<T> of_;
  const Layers& layers_;
  const cudnnHandle_t handle_;
  const CudnnReserve<T> reserve_;
  const CudnnBackwardSpace<T> space_;
};

class CudnnLstm final : public RecurrentForm {
 public:
  CudnnLstm(const RecurrentSizes& size, bool backward) : layers_(size), is_backward_(backward) {}
  bool describe(cudnnHandle_t handle, const RecurrentSizes& size, bool keep) {
    return layers_.describe(handle, size, keep);
  }

  std::size_t bytes() const noexcept override { return sizeof(*this); }
  const char* way() const noexcept override { return "by cuDNN"; }
  Status run(const KernelContext& context) const noexcept override {
    const char* problem = nullptr;
    const cudnnHandle_t handle = cuda_stream(context.stream).cudnn(problem);
    if (handle == nullptr) return Status::refuse(problem);
    const DType dtype = context.inputs.back().spec.dtype;
    return for_floating(dtype, [&]<class T>(T) {
      return is_backward_ ? Backward<T>(context, layers_, handle).run()
                          : run_forward<T>(context, layers_, handle);
    });
  }

 private:
  Layers layers_;
  const bool is_backward_;
};

}  // namespace

detail::Ref<RecurrentForm> find_lstm(const MemoryQuery& query, bool backward) {
  const auto& attributes = query.attribute<RecurrentAttributes>();
  const RecurrentSizes size(query.inputs[backward ? kRecurrentBackwardX : 0], attributes);
  if (!suits_cudnn(size, query.profile)) return nullptr;
  const char* problem = nullptr;
  CudaStream& stream = cuda_stream(query.stream);
  const cudnnHandle_t handle = cudnn() == nullptr ? nullptr : stream.cudnn(problem);
  if (!stream.uses_cudnn(handle != nullptr)) return nullptr;
  if (handle == nullptr)
    throw Error(std::string("[lstm] ") + problem +
                " now, as it did before: it takes memory of its own");
  const bool keep = backward || query.wants(RecurrentOperands(attributes).reserve);
  auto lstm = detail::make_ref<CudnnLstm>(size, backward);
  if (!lstm->describe(handle, size, keep)) return nullptr;
  return lstm;
}

}  // namespace ebb::cuda

#else

namespace ebb::cuda {

detail::Ref<RecurrentForm> find_lstm(const MemoryQuery&, bool) { return nullptr; }

}  // namespace ebb::cuda

#endif
