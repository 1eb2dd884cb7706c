#include <algorithm>

#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/lstm_cudnn_layer.h"
#include "ebb/kernels/cuda/recurrent_cell.h"
#include "ebb/kernels/cuda/recurrent_form.h"
#include "ebb/kernels/cuda/runtime/stream.h"
#include "ebb/kernels/cuda/stream_memory.h"
#include "ebb/kernels/cuda/strided_copy.h"

#if EBB_HAS_CUDNN

namespace ebb::cuda {
namespace {

// cuDNN's calls: the first, and one description for all above it, which are alike.
class Calls {
 public:
  explicit Calls(const RecurrentSizes& size) : first_(size, 0), other_(size, 1) {}

  bool describe(cudnnHandle_t handle, const RecurrentSizes& size, bool keep) {
    const auto mode = keep ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE;
    return first_.describe(handle, mode, CudnnCallBytes(size, 0, keep)) &&
           (cudnn_calls(size) == 1 || other_.describe(handle, mode, CudnnCallBytes(size, 1, keep)));
  }
  const CudnnLayers& operator[](std::int64_t call) const noexcept {
    return call == 0 ? first_ : other_;
  }
  std::size_t bytes() const noexcept {
    return sizeof(*this) + first_.weights().size_bytes() + other_.weights().size_bytes();
  }

 private:
  CudnnLayers first_, other_;
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

// Packs W [in, 4 hidden], R [hidden, 4 hidden], b [4 hidden] of a call's layers, from `layer` on;
// the second biases become zeros.
template <class T>
Status pack_weights(const RecurrentCall<T>& of, std::int64_t layer, const CudnnLayers& as,
                    std::byte* space) noexcept {
  const RecurrentSizes& size = of.size;
  const std::size_t bias_bytes = static_cast<std::size_t>(size.gates()) * sizeof(T);
  T* const packed = reinterpret_cast<T*>(space);
  const cudaStream_t stream = stream_of(of.context);
  for (const CudnnWeights& at : as.weights()) {
    EBB_TRY(swap_axes(stream, of.in(of.at.w(layer)), packed + at.w, size.input(layer), size.gates(),
                      1));
    EBB_TRY(swap_axes(stream, of.in(of.at.r(layer)), packed + at.r, size.hidden, size.gates(), 1));
    EBB_TRY(copy(stream, packed + at.b, of.in(of.at.b(layer)), bias_bytes));
    EBB_TRY(clear(stream, packed + at.second_b, bias_bytes));
    ++layer;
  }
  return {};
}

template <class T>
Status run_forward(const KernelContext& context, const Calls& calls,
                   cudnnHandle_t handle) noexcept {
  const RecurrentCall<T> of(context);
  const RecurrentSizes& size = of.size;
  const bool keep = context.outputs[3].data != nullptr;
  const CudnnReserve<T> reserve(size, context.outputs[3].data);
  const CudnnForwardSpace<T> space(size, keep, context.workspace);
  const std::int64_t count = cudnn_calls(size);
  const auto hidden = [&](std::int64_t call) {
    return call + 1 == count ? space.y : keep ? reserve.hidden(call) : space.hidden[call % 2];
  };
  EBB_TRY(to_time_major(of, of.in(0), space.x, size.in));
  const T* x = space.x;
  for (std::int64_t call = 0; call < count; ++call) {
    if (call > 0) {
      T* const dropped = keep ? space.hidden[0] : hidden(call - 1);
      EBB_TRY(CellKernels<T>::drop(of, x, dropped, call, true));
      x = dropped;
    }
    EBB_TRY(pack_weights(of, call, calls[call], space.weights));
    EBB_TRY(calls[call].forward(handle, x, hidden(call), of.h0(call), of.last(1, call), of.c0(call),
                                of.last(2, call), space.weights, space.work,
                                keep ? reserve.of(call) : nullptr));
    x = hidden(call);
  }
  T* const sequence = context.outputs[0].as<T>();
  return sequence == nullptr ? Status{} : from_time_major(of, space.y, sequence, size.hidden);
}

template <class T>
class Backward {
 public:
  Backward(const KernelContext& context, const Calls& calls, cudnnHandle_t handle) noexcept
      : of_(context),
        calls_(calls),
        handle_(handle),
        reserve_(of_.size, context.inputs[kRecurrentBackwardReserve].data),
        space_(of_.size, context.destroys(kRecurrentBackwardReserve), context.workspace) {}

  Status run() const noexcept {
    const RecurrentSizes& size = of_.size;
    EBB_TRY(to_time_major<T>(of_, of_.sequence, space_.y, size.hidden));
    const std::int64_t last = cudnn_calls(size) - 1;
    T* const dy = d_output(last);
    if (of_.d_sequence == nullptr) {
      EBB_TRY(
          clear(stream_of(of_.context), dy, static_cast<std::size_t>(size.steps()) * sizeof(T)));
    } else {
      EBB_TRY(to_time_major<T>(of_, of_.d_sequence, dy, size.hidden));
    }
    const std::int64_t lowest = std::min(of_.lowest_layer(), last);
    for (std::int64_t call = last; call >= lowest; --call) EBB_TRY(run_call(call));
    T* const dx = of_.gradient(0);
    return dx == nullptr ? Status{} : from_time_major<T>(of_, space_.dx, dx, size.in);
  }

 private:
  // The gradient of a call's output, which is the gradient of the next call's input.
  T* d_output(std::int64_t call) const noexcept {
    return call < 0 ? space_.dx : space_.d_hidden[call % 2];
  }
  T* output(std::int64_t call) const noexcept {
    return call + 1 == cudnn_calls(of_.size) ? space_.y : reserve_.hidden(call);
  }

  Status run_call(std::int64_t call) const noexcept {
    const CudnnLayers& as = calls_[call];
    EBB_TRY(pack_weights<T>(of_, call, as, space_.weights));
    std::byte* reserve = reserve_.of(call);
    if (space_.reserve != nullptr) {
      EBB_TRY(copy(stream_of(of_.context), space_.reserve, reserve,
                   CudnnCallBytes(of_.size, call, true).reserve));
      reserve = space_.reserve;
    }
    T* const dx = d_output(call - 1);
    EBB_TRY(as.backward_data(
        handle_, output(call), d_output(call), dx, of_.h0(call), of_.of_layer(of_.d_hidden, call),
        of_.state_gradient(of_.at.h0, call), of_.c0(call), of_.of_layer(of_.d_cell, call),
        of_.state_gradient(of_.at.c0, call), space_.weights, space_.work, reserve));
    if (call > 0) EBB_TRY(CellKernels<T>::drop(of_, dx, dx, call, true));
    return weight_gradients(call, reserve);
  }

  Status weight_gradients(std::int64_t call, std::byte* reserve) const noexcept {
    const RecurrentSizes& size = of_.size;
    const CudnnLayers& as = calls_[call];
    const cudaStream_t stream = stream_of(of_.context);
    const auto wants = [&](std::int64_t layer) {
      return of_.gradient(of_.at.w(layer)) || of_.gradient(of_.at.r(layer)) ||
             of_.gradient(of_.at.b(layer));
    };
    const std::int64_t end = call + static_cast<std::int64_t>(as.weights().size());
    std::int64_t first = call;
    while (first < end && !wants(first)) ++first;
    if (first == end) return {};
    if (call == 0) {
      EBB_TRY(to_time_major<T>(of_, of_.in(0), space_.x, size.in));
    } else {
      EBB_TRY(CellKernels<T>::drop(of_, output(call - 1), space_.x, call, true));
    }
    EBB_TRY(clear(stream, space_.d_weights, as.weight_bytes()));
    EBB_TRY(as.backward_weights(handle_, space_.x, of_.h0(call), output(call), space_.d_weights,
                                space_.work, reserve));
    const T* const packed = reinterpret_cast<const T*>(space_.d_weights);
    for (std::int64_t layer = call; const CudnnWeights& at : as.weights()) {
      T *const dw = of_.gradient(of_.at.w(layer)), *const dr = of_.gradient(of_.at.r(layer));
      if (dw != nullptr)
        EBB_TRY(swap_axes(stream, packed + at.w, dw, size.gates(), size.input(layer), 1));
      if (dr != nullptr)
        EBB_TRY(swap_axes(stream, packed + at.r, dr, size.gates(), size.hidden, 1));
      EBB_TRY(copy(stream, of_.gradient(of_.at.b(layer)), packed + at.b,
                   static_cast<std::size_t>(size.gates()) * sizeof(T)));
      ++layer;
    }
    return {};
  }

  const RecurrentBackwardCall<T> of_;
  const Calls& calls_;
  const cudnnHandle_t handle_;
  const CudnnReserve<T> reserve_;
  const CudnnBackwardSpace<T> space_;
};

class CudnnLstm final : public RecurrentForm {
 public:
  CudnnLstm(const RecurrentSizes& size, bool backward) : calls(size), is_backward_(backward) {}

  Calls calls;

  std::size_t bytes() const noexcept override {
    return sizeof(*this) - sizeof(calls) + calls.bytes();
  }
  const char* way() const noexcept override {
    return calls[0].is_persistent() ? "by cuDNN, persistent" : "by cuDNN";
  }
  Status run(const KernelContext& context) const noexcept override {
    const char* problem = nullptr;
    const cudnnHandle_t handle = cuda_stream(context.stream).cudnn(problem);
    if (handle == nullptr) return Status::refuse(problem);
    const DType dtype = context.inputs.back().spec.dtype;
    return for_floating(dtype, [&]<class T>(T) {
      return is_backward_ ? Backward<T>(context, calls, handle).run()
                          : run_forward<T>(context, calls, handle);
    });
  }

 private:
  const bool is_backward_;
};

}  // namespace

detail::Ref<RecurrentForm> find_lstm(const MemoryQuery& query, bool backward) {
  const auto& attributes = query.attribute<RecurrentAttributes>();
  const RecurrentSizes size(query.inputs[backward ? kRecurrentBackwardX : 0], attributes);
  if (!suits_cudnn(size, query.profile)) return nullptr;
  const cudnnHandle_t handle = cuda_stream(query.stream).cudnn_or_none("lstm");
  if (handle == nullptr) return nullptr;
  const bool keep = backward || query.wants(RecurrentOperands(attributes).reserve);
  auto lstm = detail::make_ref<CudnnLstm>(size, backward);
  if (!lstm->calls.describe(handle, size, keep)) return nullptr;
  return lstm;
}

}  // namespace ebb::cuda

#else

namespace ebb::cuda {

detail::Ref<RecurrentForm> find_lstm(const MemoryQuery&, bool) { return nullptr; }

}  // namespace ebb::cuda

#endif
