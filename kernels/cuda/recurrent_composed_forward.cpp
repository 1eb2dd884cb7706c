#include "ebb/kernels/cuda/recurrent_composed.h"

namespace ebb::cuda {
namespace {

using Products = RecurrentForwardProducts;

template <class T>
class Forward {
 public:
  Forward(const KernelContext& context, const std::vector<Product>& products) noexcept
      : of_(context),
        products_(products),
        keep_(context.outputs[of_.at.reserve].data != nullptr),
        reserve_(of_.size, context.outputs[of_.at.reserve].data),
        space_(of_.size, keep_, context.outputs[0].data != nullptr, 0, context.workspace) {}

  Status run() const noexcept {
    for (std::int64_t layer = 0; layer < of_.size.layers; ++layer) EBB_TRY(run_layer(layer));
    return {};
  }

 private:
  Steps<T> hidden(std::int64_t layer) const noexcept {
    const RecurrentSizes& size = of_.size;
    if (!size.is_last(layer))
      return all_steps(keep_ ? reserve_.hidden(layer) : space_.hidden[layer % 2], size,
                       size.hidden);
    T* const sequence = of_.context.outputs[0].template as<T>();
    return sequence != nullptr ? all_steps(sequence, size, size.hidden)
                               : one_step(space_.last_hidden, size.hidden);
  }

  Status multiply(Products::Index index, const T* a, const T* b, T* c,
                  bool accumulate = false) const noexcept {
    return products_[index].run(
        of_.context.stream,
        {.a = a, .b = b, .c = c, .accumulate = accumulate, .workspace = space_.work});
  }

  Status run_layer(std::int64_t layer) const noexcept {
    const RecurrentSizes& size = of_.size;
    const bool has_cell = size.has_cell;
    const T *h0 = of_.h0(layer), *c0 = of_.c0(layer);
    if (size.time == 0) {
      const std::size_t bytes = static_cast<std::size_t>(size.state()) * sizeof(T);
      EBB_TRY(copy(stream_of(of_.context), of_.last(1, layer), h0, bytes));
      return has_cell ? copy(stream_of(of_.context), of_.last(2, layer), c0, bytes) : Status{};
    }
    const T* x = of_.in(0);
    if (layer > 0) EBB_TRY(input_from_below(layer, x));
    T* const gates = keep_ ? reserve_.gates(layer) : space_.gates;
    EBB_TRY(multiply(layer == 0 ? Products::kFirstInput : Products::kInput, x,
                     of_.in(of_.at.w(layer)), gates));
    const Steps<T> gate_steps = all_steps(gates, size, gate_row(size, keep_));
    const Steps<Accumulate<T>> cells = !has_cell ? Steps<Accumulate<T>>{}
                                       : keep_ ? all_steps(reserve_.cells(layer), size, size.hidden)
                                               : one_step(space_.cells, size.hidden);
    const Steps<T> states = hidden(layer);
    const bool sparse = states.step == 0;  // hidden states of a single step, without gaps
    StepRows<const T> h{h0, size.hidden};
    StepRows<const Accumulate<T>> c;
    for (std::int64_t t = 0; t < size.time; ++t) {
      if (h.data != nullptr)
        EBB_TRY(multiply(t == 0 || sparse ? Products::kFirstStep : Products::kStep, h.data,
                         of_.in(of_.at.r(layer)), has_cell ? gate_steps.at(t) : space_.recurrent,
                         has_cell));
      T* const recurrent = h.data == nullptr ? nullptr : space_.recurrent;
      EBB_TRY(CellKernels<T>::forward(of_, {.gates = rows_at(gate_steps, t),
                                            .recurrent = recurrent,
                                            .bias = of_.in(of_.at.b(layer)),
                                            .cell_before = c,
                                            .first_cell = c0,
                                            .hidden_before = h,
                                            .cell = rows_at(cells, t),
                                            .hidden = rows_at(states, t),
                                            .last_hidden = of_.last(1, layer),
                                            .last_cell = has_cell ? of_.last(2, layer) : nullptr,
                                            .first_hidden = h0,
                                            .ends = {of_.lengths(), t, size.time},
                                            .keep = keep_}));
      h = values_at(states, t);
      c = values_at(cells, t);
    }
    return {};
  }

  Status input_from_below(std::int64_t layer, const T*& x) const noexcept {
    T* const below = hidden(layer - 1).data;
    x = below;
    if (!of_.size.drops(layer)) return {};
    T* const dropped = keep_ ? space_.hidden[0] : below;
    x = dropped;
    return CellKernels<T>::drop(of_, below, dropped, layer, false);
  }

  const RecurrentCall<T> of_;
  const std::vector<Product>& products_;
  const bool keep_;
  const RecurrentReserve<T> reserve_;
  const RecurrentForwardSpace<T> space_;
};

}  // namespace

detail::Ref<RecurrentForm> compose_recurrent(const MemoryQuery& query) {
  const RecurrentSizes size(query.inputs[0], query.attribute<RecurrentAttributes>());
  const RecurrentOperands at(query.attribute<RecurrentAttributes>());
  const Products products(size, query.wants(at.reserve), query.wants(0));
  return detail::make_ref<ComposedRecurrent<Forward>>(products.shapes, query);
}

}  // namespace ebb::cuda
