// Sizes, memory layout and products of a stack of recurrent layers, for the form that is composed
// of products and a cell kernel (recurrent_composed.h).
//
// Everything stays batch-major, row b * time + t. A step's rows are then `time` rows apart, which
// products take as a stride, so nothing is transposed. Forward and backward go layer by layer. The
// products that do not depend on the step before, by W and for the weights' gradients, are one
// product over all steps.
//
// With f16 and bf16, everything that a product reads or writes has that type: the gates before
// activation (rounded after the product by W and again after adding the product by R), the
// activated gates kept for backward, and the gradients of the gates. Values that pass from step to
// step without a product are f32: the cells, in the reserve too, and the gradients of cells. So a
// reserve takes 12 bytes for each hidden unit of each step, not 20 as with f32, and sums over time
// lose nothing. A GRU has no cells: 8 bytes and 16. Its state is rounded at each step, since a
// product reads it; the part of the state's gradient that bypasses the product is f32.
#pragma once
#include <array>

#include "ebb/core/kernels/carver.h"
#include "ebb/core/kernels/recurrent_operands.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/plans/product_memory.h"
#include "ebb/kernels/cuda/plans/reduce_plan.h"

namespace ebb::cuda {

// Elements from a step's gates to the next step's in forward, with a reserve and without.
inline std::int64_t gate_row(const RecurrentSizes& size, bool keep) noexcept {
  return keep ? size.gates() : size.columns();
}

// Rows of a batch, step by step.
template <class T>
struct Steps {
  T* data = nullptr;
  std::int64_t row = 0;   // elements from a row of the batch to the next
  std::int64_t step = 0;  // from a step to the next; 0: each step overwrites the one before

  T* at(std::int64_t t) const noexcept { return data == nullptr ? nullptr : data + t * step; }
};
// The steps of [batch, time, width].
template <class T>
Steps<T> all_steps(T* data, const RecurrentSizes& size, std::int64_t width) noexcept {
  return {data, size.time * width, width};
}
// [batch, width], the same memory for every step.
template <class T>
Steps<T> one_step(T* data, std::int64_t width) noexcept {
  return {data, width, 0};
}

// Memory that forward leaves for backward. An LSTM's layer keeps its activated gates [batch, time,
// 4, hidden], i, f, g, o, and its cells [batch, time, hidden]; a GRU's keeps r, z, q, n. All layers
// but the last, whose output is `sequence`, keep their hidden states [batch, time, hidden].
// Backward recomputes tanh of the cells and dropout's masks.
template <class T>
struct RecurrentReserve {
  RecurrentSizes size;
  T* all_gates;
  Accumulate<T>* all_cells;
  T* all_hidden;
  std::size_t bytes;

  RecurrentReserve(const RecurrentSizes& sizes, void* base) noexcept : size(sizes) {
    Carver carver(base);
    all_gates = carver.take<T>(size.layers * 4 * stride());
    all_cells = carver.take<Accumulate<T>>(size.has_cell ? size.layers * stride() : 0);
    all_hidden = carver.take<T>((size.layers - 1) * stride());
    bytes = carver.bytes();
  }
  // Elements from a layer to the next. Aligns each like separate memory, so that products give the
  // same bits whether or not the gradients are written over them.
  std::int64_t stride() const noexcept { return (size.steps() + 63) / 64 * 64; }
  T* gates(std::int64_t layer) const noexcept { return all_gates + layer * 4 * stride(); }
  Accumulate<T>* cells(std::int64_t layer) const noexcept { return all_cells + layer * stride(); }
  T* hidden(std::int64_t layer) const noexcept { return all_hidden + layer * stride(); }
};

// The products of forward and of backward, named after their results. Products whose shape differs
// between the first layer and the others come twice. Products that are not needed have m = 0.
struct RecurrentForwardProducts {
  enum Index : std::size_t { kFirstInput, kInput, kFirstStep, kStep, kCount };
  std::array<ProductShape, kCount> shapes;

  // keep: whether there is a reserve. sequence: whether an output keeps all hidden states of the
  // last layer.
  RecurrentForwardProducts(const RecurrentSizes& size, bool keep, bool sequence) noexcept;
};
struct RecurrentBackwardProducts {
  enum Index : std::size_t {
    kHidden,          // the gradient that a step hands to the step before
    kFirstRecurrent,  // dR of the first steps, from h0
    kRecurrent,       // dR of the other steps
    kFirstWeight,
    kWeight,
    kFirstInput,
    kInput,
    // For a GRU, the columns of n in W come apart, since q lies before n's gates; the products
    // above then have the columns of r and z.
    kFirstWeightOfN,
    kWeightOfN,
    kFirstInputOfN,
    kInputOfN,
    kCount
  };
  std::array<ProductShape, kCount> shapes;

  explicit RecurrentBackwardProducts(const RecurrentSizes& size) noexcept;
};
// Bytes of workspace for products that run one after the other.
std::size_t largest_bytes(std::span<const ProductShape> shapes,
                          const memory::Profile* profile) noexcept;

// Workspace of forward. Without a reserve, gates and hidden states lie here, and each layer
// overwrites those before it.
template <class T>
struct RecurrentForwardSpace {
  T* gates;              // [batch, time, columns]
  T* recurrent;          // [batch, columns]: a GRU's h R of a step
  Accumulate<T>* cells;  // [batch, hidden], of an LSTM
  T* hidden[2];     // [batch, time, hidden] of layers below the last, in turns. With dropout and a
                    // reserve only hidden[0] is used, for the dropped input
  T* last_hidden;   // [batch, hidden] of the last layer, if the sequence is not an output
  std::byte* work;  // of the products
  std::size_t bytes;

  RecurrentForwardSpace(const RecurrentSizes& size, bool keep, bool sequence,
                        std::size_t work_bytes, void* base) noexcept {
    Carver carver(base);
    const auto take_if = [&carver](bool here, std::int64_t elements) {
      return here ? carver.take<T>(elements) : nullptr;
    };
    gates = take_if(!keep, size.rows() * size.columns());
    recurrent = take_if(!size.has_cell, size.batch * size.columns());
    cells = keep || !size.has_cell ? nullptr : carver.take<Accumulate<T>>(size.state());
    hidden[0] = take_if(keep ? size.has_dropout : size.layers > 1, size.steps());
    hidden[1] = take_if(!keep && size.layers > 2, size.steps());
    last_hidden = take_if(!sequence, size.state());
    work = carver.take_bytes(work_bytes);
    bytes = carver.bytes();
  }
};

template <class T>
struct RecurrentBackwardSpace {
  T* d_gates;   // [batch, time, 4, hidden]; null: overwrites the gates
  T* below;     // [batch, time, hidden]: a layer's input with dropout, then its gradient; null:
                // overwrites the cells
  T* d_hidden;  // [batch, hidden]: gradient handed to the step before, by the product
  Accumulate<T>* d_carried;  // [batch, hidden]: gradient handed on beside it
  std::byte* work;           // of the products and sums
  std::size_t bytes;

  RecurrentBackwardSpace(const RecurrentSizes& size, bool destroys, std::size_t work_bytes,
                         void* base) noexcept {
    Carver carver(base);
    d_gates = destroys ? nullptr : carver.take<T>(4 * size.steps());
    const bool has_room = destroys && size.has_cell;
    below = has_room || size.layers == 1 ? nullptr : carver.take<T>(size.steps());
    d_hidden = carver.take<T>(size.state());
    d_carried = carver.take<Accumulate<T>>(size.state());
    work = carver.take_bytes(work_bytes);
    bytes = carver.bytes();
  }
};

}  // namespace ebb::cuda
