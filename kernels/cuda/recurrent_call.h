#pragma once
#include "ebb/kernels/cuda/recurrent_cell.h"
#include "ebb/kernels/cuda/stream_memory.h"

namespace ebb::cuda {

// The operands of `recurrent` by name, for cuDNN and for the composed form.
template <class T>
struct RecurrentCall {
  const KernelContext& context;
  const std::size_t x;  // index of the first forward input
  const RecurrentAttributes& attributes;
  const RecurrentSizes size;
  const RecurrentOperands at;

  explicit RecurrentCall(const KernelContext& of, std::size_t x = 0) noexcept
      : context(of),
        x(x),
        attributes(of.attribute<RecurrentAttributes>()),
        size(of.inputs[x].spec, attributes),
        at(attributes) {}

  cudaStream_t stream() const noexcept { return stream_of(context); }
  // A forward input, or a gradient input behind them.
  template <class U = const T>
  U* in(std::size_t index) const noexcept {
    return context.inputs[x + index].template as<U>();
  }
  // A layer's part of states [layers, batch, hidden]; null if they are null.
  template <class U>
  U* of_layer(U* states, std::int64_t layer) const noexcept {
    return states == nullptr ? nullptr : states + layer * size.state();
  }
  const std::int64_t* lengths() const noexcept {
    return at.lengths < 0 ? nullptr : in<const std::int64_t>(static_cast<std::size_t>(at.lengths));
  }
  const T* h0(std::int64_t layer) const noexcept { return initial(at.h0, layer); }
  const T* c0(std::int64_t layer) const noexcept { return initial(at.c0, layer); }
  // A layer's part of an output with states.
  T* last(std::size_t output, std::int64_t layer) const noexcept {
    return of_layer(context.outputs[output].template as<T>(), layer);
  }
  Status drop_layer(const T* from, T* to, std::int64_t layer, bool time_major) const noexcept {
    return drop<T>(stream(), size, from, to, attributes.dropout,
                   in<const std::int64_t>(static_cast<std::size_t>(at.draw)), layer, time_major);
  }

 private:
  const T* initial(std::int64_t input, std::int64_t layer) const noexcept {
    return input < 0 ? nullptr : of_layer(in(static_cast<std::size_t>(input)), layer);
  }
};

// The operands of `recurrent_backward`.
template <class T>
struct RecurrentBackwardCall : RecurrentCall<T> {
  using RecurrentCall<T>::at, RecurrentCall<T>::context, RecurrentCall<T>::size;

  const T* const sequence;
  const T *d_sequence = nullptr, *d_hidden = nullptr, *d_cell = nullptr;  // null: not given

  explicit RecurrentBackwardCall(const KernelContext& of) noexcept
      : RecurrentCall<T>(of, kRecurrentBackwardX),
        sequence(of.inputs[kRecurrentBackwardSequence].template as<const T>()) {
    auto next = static_cast<std::size_t>(at.count);
    const std::int32_t given = this->attributes.d_given;
    if ((given & 1) != 0) d_sequence = this->in(next++);
    if ((given & 2) != 0) d_hidden = this->in(next++);
    if ((given & 4) != 0) d_cell = this->in(next++);
  }

  // Memory for the gradient of a forward input, or null.
  T* gradient(std::size_t input) const noexcept {
    return context.outputs[at.gradient(input)].template as<T>();
  }
  T* state_gradient(std::int64_t input, std::int64_t layer) const noexcept {
    return input < 0 ? nullptr : this->of_layer(gradient(static_cast<std::size_t>(input)), layer);
  }

  // The lowest layer that backward must reach: no gradient below it is wanted.
  std::int64_t lowest_layer() const noexcept {
    const auto wants = [&](std::int64_t input) {
      return input >= 0 && gradient(static_cast<std::size_t>(input)) != nullptr;
    };
    if (wants(0) || wants(at.h0) || wants(at.c0)) return 0;
    std::int64_t layer = 0;
    while (layer + 1 < size.layers && !gradient(at.w(layer)) && !gradient(at.r(layer)) &&
           !gradient(at.b(layer)))
      ++layer;
    return layer;
  }

  // Writes all gradients where there are no steps, or no sequences.
  Status without_steps() const noexcept {
    for (std::int64_t i = 0; i < at.count; ++i) {
      if (!at.has_gradient(i)) continue;
      const auto input = static_cast<std::size_t>(i);
      const T* const from = i == at.h0 ? d_hidden : i == at.c0 ? d_cell : nullptr;
      const std::size_t bytes = context.outputs[at.gradient(input)].spec.bytes();
      EBB_TRY(copy(this->stream(), gradient(input), from, bytes));
    }
    return {};
  }
};

}  // namespace ebb::cuda
