// Memory layout of an LSTM that cuDNN computes (lstm_cudnn.cpp): all layers in one call, which lets
// steps of different layers run beside each other, or one a call where ebb's own dropout lies
// between them.
//
// Inside everything is time-major, row t * batch + b, the layout that all of cuDNN's algorithms
// take. Only cuDNN knows how much memory it needs, and a device's twin has no cuDNN, so the sizes
// here are ebb's own bounds. Where cuDNN asks for more, the composed form replaces it.
#pragma once
#include <limits>

#include "ebb/allocator/profile.h"
#include "ebb/kernels/cuda/plans/cudnn_workspace.h"
#include "ebb/kernels/cuda/plans/recurrent_layout.h"

namespace ebb::cuda {

// Calls for a stack. A call has the number of its first layer, since it has either one layer or
// all.
inline std::int64_t cudnn_calls(const RecurrentSizes& size) noexcept {
  return size.has_dropout ? size.layers : 1;
}

// Bounds for one call of L layers. cuDNN 9.19 and 9.26 ask for no more by the standard algorithm,
// on capabilities from 7.5 to 12.0, forward and backward: of workspace the matrices, for each row
// of each step 4 gates or the input and two hidden states, for each layer 6 batches of hidden units
// and 8 MiB; of reserve 6 L - 1 values for each hidden unit of each step. All of it has the
// elements' own size, in pieces of 16 bytes, plus 256 bytes. The room above that is spare. The
// persistent algorithm for few hidden units takes as much in 9.26; 9.19 asks for 16 values more for
// each hidden unit of each step, and is then not taken.
struct CudnnCallBytes {
  std::size_t weights, workspace, reserve;

  CudnnCallBytes(const RecurrentSizes& size, std::int64_t call, bool keep) noexcept {
    const auto bytes = [&](std::int64_t elements) {
      return static_cast<std::size_t>(elements) * size_of(size.dtype);
    };
    const std::int64_t layers = size.layers / cudnn_calls(size), in = size.input(call);
    weights = bytes(size.gates() * (in - size.hidden + layers * 2 * (size.hidden + 1)));
    constexpr std::size_t kFixed = std::size_t{8} << 20, kRoom = 16 << 10;
    workspace = weights + static_cast<std::size_t>(layers) * kFixed + kRoom +
                bytes(size.rows() * std::max(size.gates(), in + 2 * size.hidden) +
                      6 * layers * size.state());
    reserve = keep ? bytes((6 * layers - 1) * size.steps()) + kRoom : 0;
  }
  // The larger of the first call's bounds and the others', which are alike.
  static CudnnCallBytes largest(const RecurrentSizes& size, bool keep) noexcept {
    CudnnCallBytes first(size, 0, keep);
    const CudnnCallBytes other(size, std::min<std::int64_t>(1, cudnn_calls(size) - 1), keep);
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

// cuDNN's reserve of each call, and the hidden states [time, batch, hidden] that all but the last
// give.
template <class T>
struct CudnnReserve {
  RecurrentSizes size;
  std::byte* opaque;
  std::size_t call_bytes;
  T* all_hidden;
  std::size_t bytes;

  CudnnReserve(const RecurrentSizes& sizes, void* base) noexcept : size(sizes) {
    // Calls begin at multiples of the alignment.
    call_bytes = (CudnnCallBytes(size, 0, true).reserve + kCudnnAlignment - 1) / kCudnnAlignment *
                 kCudnnAlignment;
    const std::int64_t calls = cudnn_calls(size);
    Carver carver(base);
    opaque = carver.take_bytes(static_cast<std::size_t>(calls) * call_bytes, kCudnnAlignment);
    all_hidden = carver.take<T>((calls - 1) * size.steps());
    bytes = carver.bytes();
  }
  std::byte* of(std::int64_t call) const noexcept {
    return opaque + static_cast<std::size_t>(call) * call_bytes;
  }
  T* hidden(std::int64_t call) const noexcept { return all_hidden + call * size.steps(); }
};

template <class T>
struct CudnnForwardSpace {
  std::byte *weights, *work;  // cuDNN's
  T* x;                       // [time, batch, in]
  T* y;                       // [time, batch, hidden] of the last layer
  T* hidden[2];               // as in RecurrentForwardSpace, of calls
  std::size_t bytes;

  CudnnForwardSpace(const RecurrentSizes& size, bool keep, void* base) noexcept {
    const CudnnCallBytes call = CudnnCallBytes::largest(size, keep);
    Carver carver(base);
    weights = carver.take_bytes(call.weights, kCudnnAlignment);
    work = carver.take_bytes(call.workspace, kCudnnAlignment);
    x = carver.take<T>(size.rows() * size.in);
    y = carver.take<T>(size.steps());
    hidden[0] = carver.take<T>(size.has_dropout ? size.steps() : 0);
    hidden[1] = carver.take<T>(!keep && cudnn_calls(size) > 2 ? size.steps() : 0);
    bytes = carver.bytes();
  }
};

template <class T>
struct CudnnBackwardSpace {
  std::byte *weights, *d_weights, *work;
  std::byte* reserve;  // copy of a call's, since cuDNN writes into it; null if the reserve may be
                       // destroyed
  T* x;                // [time, batch, the wider of in and hidden]: a call's input
  T* y;                // [time, batch, hidden] of the last layer
  T* d_hidden[2];      // [time, batch, hidden]: gradients of a call's output and input, in turns
  T* dx;               // [time, batch, in]
  std::size_t bytes;

  CudnnBackwardSpace(const RecurrentSizes& size, bool destroys, void* base) noexcept {
    const CudnnCallBytes call = CudnnCallBytes::largest(size, true);
    Carver carver(base);
    weights = carver.take_bytes(call.weights, kCudnnAlignment);
    d_weights = carver.take_bytes(call.weights, kCudnnAlignment);
    work = carver.take_bytes(call.workspace, kCudnnAlignment);
    reserve = destroys ? nullptr : carver.take_bytes(call.reserve, kCudnnAlignment);
    x = carver.take<T>(size.rows() * (size.has_dropout ? std::max(size.in, size.hidden) : size.in));
    y = carver.take<T>(size.steps());
    d_hidden[0] = carver.take<T>(size.steps());
    d_hidden[1] = carver.take<T>(size.has_dropout ? size.steps() : 0);
    dx = carver.take<T>(size.rows() * size.in);
    bytes = carver.bytes();
  }
};

}  // namespace ebb::cuda
