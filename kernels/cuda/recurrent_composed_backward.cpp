#include "ebb/kernels/cuda/epilogue.h"
#include "ebb/kernels/cuda/recurrent_composed.h"

namespace ebb::cuda {
namespace {

using Products = RecurrentBackwardProducts;

template <class T>
class Backward {
 public:
  Backward(const KernelContext& context, const std::vector<Product>& products) noexcept
      : of_(context),
        products_(products),
        reserve_(of_.size, context.inputs[kRecurrentBackwardReserve].data),
        space_(of_.size, context.destroys(kRecurrentBackwardReserve), 0, context.workspace) {}

  Status run() const noexcept {
    if (of_.size.rows() == 0) return gradients_without_steps();
    const std::int64_t lowest = of_.lowest_layer();
    for (std::int64_t layer = of_.size.layers - 1; layer >= lowest; --layer)
      EBB_TRY(run_layer(layer, layer == lowest));
    return {};
  }

 private:
  T* d_gates(std::int64_t layer) const noexcept {
    return space_.d_gates != nullptr ? space_.d_gates : reserve_.gates(layer);
  }
  T* below(std::int64_t layer) const noexcept {
    return space_.below != nullptr ? space_.below : reinterpret_cast<T*>(reserve_.cells(layer));
  }
  const T* hidden(std::int64_t layer) const noexcept {
    return of_.size.is_last(layer) ? of_.sequence : reserve_.hidden(layer);
  }
  Status multiply(Products::Index index, const T* a, const T* b, T* c,
                  bool accumulate = false) const noexcept {
    return products_[index].run(
        of_.context.stream,
        {.a = a, .b = b, .c = c, .accumulate = accumulate, .workspace = space_.work});
  }

  // Writes all gradients where there are no steps, or no sequences.
  Status gradients_without_steps() const noexcept {
    for (std::int64_t i = 0; i < of_.at.count; ++i) {
      if (!of_.at.has_gradient(i)) continue;
      const auto input = static_cast<std::size_t>(i);
      const T* const from = i == of_.at.h0 ? of_.d_hidden : i == of_.at.c0 ? of_.d_cell : nullptr;
      const std::size_t bytes = of_.context.outputs[of_.at.gradient(input)].spec.bytes();
      EBB_TRY(copy(stream_of(of_.context), of_.gradient(input), from, bytes));
    }
    return {};
  }

  Status run_layer(std::int64_t layer, bool is_lowest) const noexcept {
    EBB_TRY(run_steps(layer));
    const RecurrentSizes& size = of_.size;
    if (T* const db = of_.gradient(of_.at.b(layer))) {
      EBB_TRY(column_sum(stream_of(of_.context), size.dtype, d_gates(layer), db, size.rows(),
                         size.gates(), space_.work));
      if (!size.has_cell) EBB_TRY(swap_last_gates(db));
    }
    if (T* const dw = of_.gradient(of_.at.w(layer))) {
      const T* x = nullptr;
      EBB_TRY(input(layer, x));
      EBB_TRY(
          multiply(layer == 0 ? Products::kFirstWeight : Products::kWeight, x, d_gates(layer), dw));
      if (!size.has_cell)
        EBB_TRY(multiply(layer == 0 ? Products::kFirstWeightOfN : Products::kWeightOfN, x,
                         d_gates(layer) + 3 * size.hidden, dw + 2 * size.hidden));
    }
    // After the last reader of x and of the memory below: dx may have taken it over.
    T* const dx = layer > 0 ? (is_lowest ? nullptr : below(layer)) : of_.gradient(0);
    if (dx != nullptr) {
      EBB_TRY(multiply(layer == 0 ? Products::kFirstInput : Products::kInput, d_gates(layer),
                       of_.in(of_.at.w(layer)), dx));
      if (!size.has_cell)
        EBB_TRY(multiply(layer == 0 ? Products::kFirstInputOfN : Products::kInputOfN,
                         d_gates(layer) + 3 * size.hidden,
                         of_.in(of_.at.w(layer)) + 2 * size.hidden, dx, true));
      if (size.drops(layer)) EBB_TRY(CellKernels<T>::drop(of_, dx, dx, layer, false));
    }
    T* const dr = of_.gradient(of_.at.r(layer));
    return dr == nullptr ? Status{} : recurrent_gradient(layer, dr);
  }

  // Reorders a GRU's bias gradient from the order of its gates, r, z, q, n, to the order of its
  // bias, r, z, n, q. Uses d_hidden as scratch, which nobody reads any more.
  Status swap_last_gates(T* db) const noexcept {
    const std::int64_t hidden = of_.size.hidden;
    const std::size_t bytes = static_cast<std::size_t>(hidden) * sizeof(T);
    EBB_TRY(copy(stream_of(of_.context), space_.d_hidden, db + 2 * hidden, bytes));
    EBB_TRY(copy(stream_of(of_.context), db + 2 * hidden, db + 3 * hidden, bytes));
    return copy(stream_of(of_.context), db + 3 * hidden, space_.d_hidden, bytes);
  }

  // Computes d_gates of all steps, from the last to the first, and the gradients of the initial
  // states.
  Status run_steps(std::int64_t layer) const noexcept {
    const RecurrentSizes& size = of_.size;
    const auto steps = [&](auto* data, std::int64_t width) { return all_steps(data, size, width); };
    const auto gates = steps(reserve_.gates(layer), size.gates());
    const bool has_cell = size.has_cell;
    const auto cells =
        has_cell ? steps(reserve_.cells(layer), size.hidden) : Steps<Accumulate<T>>{};
    const auto states = steps(hidden(layer), size.hidden);
    const auto d_gate_steps = steps(d_gates(layer), size.gates());
    const T* const from_above = size.is_last(layer) ? of_.d_sequence : below(layer + 1);
    const auto d_outputs = steps(from_above, size.hidden);
    T* const dh0 = of_.state_gradient(of_.at.h0, layer);
    T* const d_first = has_cell ? of_.state_gradient(of_.at.c0, layer) : dh0;
    const T* const d_last_hidden = of_.of_layer(of_.d_hidden, layer);
    const std::int64_t* const lengths = of_.lengths();
    StepRows<const T> d_hidden;
    StepRows<Accumulate<T>> d_carried;
    for (std::int64_t t = size.time - 1; t >= 0; --t) {
      const StepRows<const Accumulate<T>> d_carried_after{d_carried.data, d_carried.stride};
      StepRows<const Accumulate<T>> cell_before;
      StepRows<const T> state_before{of_.h0(layer), size.hidden};
      if (t > 0) {
        cell_before = values_at(cells, t - 1);
        state_before = values_at(states, t - 1);
      }
      d_carried = {t > 0 ? space_.d_carried : nullptr, size.hidden};
      EBB_TRY(CellKernels<T>::backward(of_, {.gates = values_at(gates, t),
                                             .cell = values_at(cells, t),
                                             .cell_before = cell_before,
                                             .first_cell = of_.c0(layer),
                                             .hidden_before = state_before,
                                             .d_hidden = d_hidden,
                                             .d_output = rows_at(d_outputs, t),
                                             .d_carried_after = d_carried_after,
                                             .d_last_cell = of_.of_layer(of_.d_cell, layer),
                                             .d_carried = d_carried,
                                             .d_first = t > 0 ? nullptr : d_first,
                                             .d_last_hidden = d_last_hidden,
                                             .ends = {lengths, t, size.time},
                                             .d_gates = rows_at(d_gate_steps, t)}));
      T* const d_hidden_before = t == 0 ? dh0 : space_.d_hidden;
      if (d_hidden_before != nullptr)
        EBB_TRY(multiply(Products::kHidden, d_gate_steps.at(t), of_.in(of_.at.r(layer)),
                         d_hidden_before, !has_cell && t == 0));
      d_hidden = {d_hidden_before, size.hidden};
    }
    if (lengths != nullptr && dh0 != nullptr)
      return CellKernels<T>::gradient_of_unused_state(of_, d_last_hidden, dh0);
    return {};
  }

  // dR = sum over steps of h_{t-1}^T d_gates_t. The first steps go with h0, if there is one; then
  // their d_gates are cleared. The rest is one product over all rows, each with the hidden state of
  // the row before: thanks to the cleared rows a sequence's last state does not count for the next
  // sequence's first step.
  Status recurrent_gradient(std::int64_t layer, T* dr) const noexcept {
    const RecurrentSizes& size = of_.size;
    const T* const h0 = of_.h0(layer);
    if (h0 != nullptr) EBB_TRY(multiply(Products::kFirstRecurrent, h0, d_gates(layer), dr));
    const std::size_t row = static_cast<std::size_t>(size.gates()) * sizeof(T);
    EBB_TRY(
        answer(cudaMemset2DAsync(d_gates(layer), static_cast<std::size_t>(size.time) * row, 0, row,
                                 static_cast<std::size_t>(size.batch), stream_of(of_.context)),
               "memory could not be cleared"));
    return multiply(Products::kRecurrent, hidden(layer), d_gates(layer) + size.gates(), dr,
                    h0 != nullptr);
  }

  Status input(std::int64_t layer, const T*& x) const noexcept {
    x = layer == 0 ? of_.in(0) : reserve_.hidden(layer - 1);
    if (!of_.size.drops(layer)) return {};
    T* const dropped = below(layer);
    const Status status = CellKernels<T>::drop(of_, x, dropped, layer, false);
    x = dropped;
    return status;
  }

  const RecurrentBackwardCall<T> of_;
  const std::vector<Product>& products_;
  const RecurrentReserve<T> reserve_;
  const RecurrentBackwardSpace<T> space_;
};

}  // namespace

detail::Ref<RecurrentForm> compose_recurrent_backward(const MemoryQuery& query) {
  const RecurrentSizes size(query.inputs[kRecurrentBackwardX],
                            query.attribute<RecurrentAttributes>());
  return detail::make_ref<ComposedRecurrent<Backward>>(Products(size).shapes, query);
}

}  // namespace ebb::cuda
