#pragma once
#include "ebb/core/base/host_device.h"
#include "ebb/core/kernels/recurrent.h"

namespace ebb {

// The indices of a stack's forward inputs and backward outputs. Backward has no outputs for `draw`
// and `lengths`, which have no gradient.
struct RecurrentOperands {
  std::int64_t h0 = -1, c0 = -1, draw = -1, lengths = -1, weights, count;
  std::size_t reserve;  // its index in the forward outputs, after the states

  explicit RecurrentOperands(const RecurrentAttributes& attributes) noexcept {
    std::int64_t next = 1;
    if (attributes.has_state != 0) {
      h0 = next++;
      if (attributes.has_cell()) c0 = next++;
    }
    if (attributes.dropout > 0) draw = next++;
    if (attributes.has_lengths != 0) lengths = next++;
    weights = next;
    count = weights + 3 * attributes.layers;
    reserve = attributes.has_cell() ? 3 : 2;
  }
  std::size_t w(std::int64_t layer) const noexcept {
    return static_cast<std::size_t>(weights + 3 * layer);
  }
  std::size_t r(std::int64_t layer) const noexcept { return w(layer) + 1; }
  std::size_t b(std::int64_t layer) const noexcept { return w(layer) + 2; }
  bool has_gradient(std::int64_t input) const noexcept { return input != draw && input != lengths; }
  // The index in the backward outputs of a forward input's gradient.
  std::size_t gradient(std::size_t input) const noexcept {
    const auto before = [&](std::int64_t left_out) {
      return left_out >= 0 && input > static_cast<std::size_t>(left_out) ? std::size_t{1} : 0;
    };
    return input - before(draw) - before(lengths);
  }
};

struct RecurrentSizes {
  DType dtype;
  std::int64_t batch, time, in, hidden, layers;
  bool has_cell, has_state, has_dropout, has_lengths;

  RecurrentSizes(const Spec& x, const RecurrentAttributes& attributes) noexcept
      : dtype(x.dtype),
        batch(x.shape.dim(0)),
        time(x.shape.dim(1)),
        in(x.shape.dim(2)),
        hidden(attributes.hidden),
        layers(attributes.layers),
        has_cell(attributes.has_cell()),
        has_state(attributes.has_state != 0),
        has_dropout(attributes.dropout > 0 && attributes.layers > 1),
        has_lengths(attributes.has_lengths != 0) {}

  std::int64_t columns() const noexcept { return (has_cell ? 4 : 3) * hidden; }  // of W and R
  std::int64_t gates() const noexcept { return 4 * hidden; }      // kept per row; also of b
  std::int64_t state() const noexcept { return batch * hidden; }  // elements of h or c of a layer
  std::int64_t rows() const noexcept { return batch * time; }
  std::int64_t steps() const noexcept { return rows() * hidden; }  // elements of all steps' h
  std::int64_t input(std::int64_t layer) const noexcept { return layer == 0 ? in : hidden; }
  // Dropout is applied to the inputs of the layers above the first.
  bool drops(std::int64_t layer) const noexcept { return has_dropout && layer > 0; }
  bool is_last(std::int64_t layer) const noexcept { return layer + 1 == layers; }
};

// The operands of `recurrent` by name.
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
  // {key, counter}, as U; there is dropout.
  template <class U>
  const U* draw() const noexcept {
    return in<const U>(static_cast<std::size_t>(at.draw));
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
};

// The number of steps of a row that count.
struct RowLength {
  std::int64_t steps;
  bool is_valid;
};
// lengths: null where all steps count.
EBB_HOST_DEVICE inline RowLength row_length(const std::int64_t* lengths, std::int64_t row,
                                            std::int64_t time) {
  if (lengths == nullptr) return {time, true};
  const bool is_valid = lengths[row] >= 0 && lengths[row] <= time;
  return {is_valid ? lengths[row] : time, is_valid};
}

}  // namespace ebb
