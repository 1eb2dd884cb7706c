// Memory layout of an LSTM that cuDNN computes, layer by layer (lstm_cudnn.cpp).
//
// Inside everything is time-major, row t * batch + b, the layout that all of cuDNN's algorithms
// take. Only cuDNN knows how much memory it needs, and a device's twin has no cuDNN, so the sizes
// here are ebb's own bounds. Where cuDNN asks for more, the composed form replaces it.
#pragma once
#include <limits>

#include "ebb/allocator/profile.h"
#include "ebb/kernels/cuda/plans/recurrent_layout.h"

namespace ebb::cuda {

// Bounds for one layer. cuDNN 9.19 and 9.26 ask, forward and backward and on any GPU, for this
// workspace: the matrices, 4 gates for each hidden unit of each step, 6 batches of hidden units and
// 8 MiB. The reserve is 4 gates and a cell for each hidden unit of each step (the same as for LSTMs
// of four layers years before, by pytorch/pytorch issue 2895). All of it has the elements' own
// size, also for 16 bits (9.19), in pieces of 16 bytes, plus 256 bytes. Anything above that is
// spare room.
struct CudnnLayerBytes {
  std::size_t weights, workspace, reserve;

  CudnnLayerBytes(const RecurrentSizes& size, std::int64_t layer, bool keep) noexcept {
    const auto bytes = [&](std::int64_t elements) {
      return static_cast<std::size_t>(elements) * size_of(size.dtype);
    };
    weights = bytes(size.gates() * (size.input(layer) + size.hidden + 2));
    constexpr std::size_t kFixed = std::size_t{8} << 20, kRoom = 16 << 10;
    workspace = weights + bytes(4 * size.steps() + 8 * size.state()) + kFixed + kRoom;
    reserve = keep ? bytes(5 * size.steps() + 8 * size.state()) + kRoom : 0;
  }
  // The larger of the first layer's bounds and the others', which are alike.
  static CudnnLayerBytes largest(const RecurrentSizes& size, bool keep) noexcept {
    CudnnLayerBytes first(size, 0, keep);
    const CudnnLayerBytes other(size, size.layers == 1 ? 0 : 1, keep);
    first.weights = std::max(first.weights, other.weights);
    first.workspace = std::max(first.workspace, other.workspace);
    return first;
  }
};

// Whether cuDNN should compute it, provided that its needs turn out to be within the bounds.
inline bool suits_cudnn(const RecurrentSizes& size, const memory::Profile* profile) noexcept {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  return profile != nullptr && profile->has_cudnn && size.has_cell &&
         (size.dtype != DType::bf16 || profile->has_cudnn_bf16) && size.steps() > 0 &&
         !size.has_lengths && size.in > 0 && size.rows() <= kMost / std::max(size.in, size.gates());
}

inline constexpr std::size_t kCudnnAlignment = 256;

// cuDNN's reserve of each layer, and the hidden states [time, batch, hidden] of all but the last.
template <class T>
struct CudnnReserve {
  RecurrentSizes size;
  std::byte* opaque;
  std::size_t layer_bytes;
  T* all_hidden;
  std::size_t bytes;

  CudnnReserve(const RecurrentSizes& sizes, void* base) noexcept : size(sizes) {
    // Layers begin at multiples of the alignment.
    layer_bytes = (CudnnLayerBytes(size, 0, true).reserve + kCudnnAlignment - 1) / kCudnnAlignment *
                  kCudnnAlignment;
    Carver carver(base);
    opaque =
        carver.take_bytes(static_cast<std::size_t>(size.layers) * layer_bytes, kCudnnAlignment);
    all_hidden = carver.take<T>((size.layers - 1) * size.steps());
    bytes = carver.bytes();
  }
  std::byte* of(std::int64_t layer) const noexcept {
    return opaque + static_cast<std::size_t>(layer) * layer_bytes;
  }
  T* hidden(std::int64_t layer) const noexcept { return all_hidden + layer * size.steps(); }
};

template <class T>
struct CudnnForwardSpace {
  std::byte *weights, *work;  // cuDNN's
  T* x;                       // [time, batch, in]
  T* y;                       // [time, batch, hidden] of the last layer
  T* hidden[2];               // as in RecurrentForwardSpace
  std::size_t bytes;

  CudnnForwardSpace(const RecurrentSizes& size, bool keep, void* base) noexcept {
    const CudnnLayerBytes layer = CudnnLayerBytes::largest(size, keep);
    Carver carver(base);
    weights = carver.take_bytes(layer.weights, kCudnnAlignment);
    work = carver.take_bytes(layer.workspace, kCudnnAlignment);
    x = carver.take<T>(size.rows() * size.in);
    y = carver.take<T>(size.steps());
    hidden[0] = carver.take<T>((keep ? size.has_dropout : size.layers > 1) ? size.steps() : 0);
    hidden[1] = carver.take<T>(!keep && size.layers > 2 ? size.steps() : 0);
    bytes = carver.bytes();
  }
};

template <class T>
struct CudnnBackwardSpace {
  std::byte *weights, *d_weights, *work;
  std::byte* reserve;  // copy of a layer's, since cuDNN writes into it; null if the reserve may be
                       // destroyed
  T* x;                // [time, batch, the wider of in and hidden]: a layer's input
  T* y;                // [time, batch, hidden] of the last layer
  T* d_hidden[2];      // [time, batch, hidden]: gradients of a layer's output and input, in turns
  T* dx;               // [time, batch, in]
  std::size_t bytes;

  CudnnBackwardSpace(const RecurrentSizes& size, bool destroys, void* base) noexcept {
    const CudnnLayerBytes layer = CudnnLayerBytes::largest(size, true);
    Carver carver(base);
    weights = carver.take_bytes(layer.weights, kCudnnAlignment);
    d_weights = carver.take_bytes(layer.weights, kCudnnAlignment);
    work = carver.take_bytes(layer.workspace, kCudnnAlignment);
    reserve = destroys ? nullptr : carver.take_bytes(layer.reserve, kCudnnAlignment);
    x = carver.take<T>(size.rows() * (size.has_dropout ? std::max(size.in, size.hidden) : size.in));
    y = carver.take<T>(size.steps());
    d_hidden[0] = carver.take<T>(size.steps());
    d_hidden[1] = carver.take<T>(size.layers > 1 ? size.steps() : 0);
    dx = carver.take<T>(size.rows() * size.in);
    bytes = carver.bytes();
  }
};

}  // namespace ebb::cuda
