#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/recurrent_cell.h"
#include "ebb/kernels/cuda/recurrent_composed.h"
#include "ebb/kernels/cuda/stream_memory.h"

namespace ebb::cuda {
namespace {

using Products = RecurrentForwardProducts;

template <class T>
class Forward {
 public:
  Forward(const KernelContext& context, const PreparedProducts& prepared) noexcept
      : context_(context),
        attributes_(context.attribute<RecurrentAttributes>()),
        size_(context.inputs[0].spec, attributes_),
        at_(attributes_),
        products_(prepared.products),
        keep_(context.outputs[at_.reserve].data != nullptr),
        reserve_(size_, context.outputs[at_.reserve].data),
        space_(size_, keep_, context.outputs[0].data != nullptr, 0, context.workspace) {}

  Status run() const noexcept {
    for (std::int64_t layer = 0; layer < size_.layers; ++layer) EBB_TRY(run_layer(layer));
    return {};
  }

 private:
  template <class U = const T>
  U* in(std::size_t index) const noexcept {
    return context_.inputs[index].template as<U>();
  }
  cudaStream_t stream() const noexcept { return stream_of(context_); }

  // A layer's part of an input state [layers, batch, hidden]; null for zeros.
  const T* initial(std::int64_t index, std::int64_t layer) const noexcept {
    return index < 0 ? nullptr : in(static_cast<std::size_t>(index)) + layer * size_.state();
  }
  T* last(std::size_t output, std::int64_t layer) const noexcept {
    T* const data = context_.outputs[output].template as<T>();
    return data == nullptr ? nullptr : data + layer * size_.state();
  }

  Steps<T> hidden(std::int64_t layer) const noexcept {
    if (!size_.is_last(layer))
      return all_steps(keep_ ? reserve_.hidden(layer) : space_.hidden[layer % 2], size_,
                       size_.hidden);
    T* const sequence = context_.outputs[0].template as<T>();
    return sequence != nullptr ? all_steps(sequence, size_, size_.hidden)
                               : one_step(space_.last_hidden, size_.hidden);
  }

  Status multiply(Products::Index index, const T* a, const T* b, T* c,
                  bool accumulate = false) const noexcept {
    return products_[index].run(
        context_.stream,
        {.a = a, .b = b, .c = c, .accumulate = accumulate, .workspace = space_.work});
  }

  Status run_layer(std::int64_t layer) const noexcept {
    const T *h0 = initial(at_.h0, layer), *c0 = initial(at_.c0, layer);
    if (size_.time == 0) {
      const std::size_t bytes = static_cast<std::size_t>(size_.state()) * sizeof(T);
      EBB_TRY(copy(stream(), last(1, layer), h0, bytes));
      return size_.has_cell ? copy(stream(), last(2, layer), c0, bytes) : Status{};
    }
    const auto* const lengths =
        at_.lengths < 0 ? nullptr : in<const std::int64_t>(static_cast<std::size_t>(at_.lengths));
    const T* x = in(0);
    if (layer > 0) EBB_TRY(input_from_below(layer, x));
    T* const gates = keep_ ? reserve_.gates(layer) : space_.gates;
    EBB_TRY(multiply(layer == 0 ? Products::kFirstInput : Products::kInput, x, in(at_.w(layer)),
                     gates));
    const Steps<T> gate_steps = all_steps(gates, size_, size_.gate_row(keep_));
    const bool has_cell = size_.has_cell;
    const Steps<Accumulate<T>> cells = !has_cell ? Steps<Accumulate<T>>{}
                                       : keep_
                                           ? all_steps(reserve_.cells(layer), size_, size_.hidden)
                                           : one_step(space_.cells, size_.hidden);
    const Steps<T> states = hidden(layer);
    const bool sparse = states.step == 0;  // hidden states of a single step, without gaps
    StepRows<const T> h{h0, size_.hidden};
    StepRows<const Accumulate<T>> c;
    for (std::int64_t t = 0; t < size_.time; ++t) {
      if (h.data != nullptr)
        EBB_TRY(multiply(t == 0 || sparse ? Products::kFirstStep : Products::kStep, h.data,
                         in(at_.r(layer)), has_cell ? gate_steps.at(t) : space_.recurrent,
                         has_cell));
      T* const recurrent = h.data == nullptr ? nullptr : space_.recurrent;
      EBB_TRY(cell_forward<T>(stream(), size_,
                              {.gates = rows_at(gate_steps, t),
                               .recurrent = recurrent,
                               .bias = in(at_.b(layer)),
                               .cell_before = c,
                               .first_cell = c0,
                               .hidden_before = h,
                               .cell = rows_at(cells, t),
                               .hidden = rows_at(states, t),
                               .last_hidden = last(1, layer),
                               .last_cell = has_cell ? last(2, layer) : nullptr,
                               .first_hidden = h0,
                               .ends = {lengths, t, size_.time},
                               .keep = keep_}));
      h = {states.at(t), states.row};
      c = {cells.at(t), cells.row};
    }
    return {};
  }

  Status input_from_below(std::int64_t layer, const T*& x) const noexcept {
    T* const below = hidden(layer - 1).data;
    x = below;
    if (!size_.drops(layer)) return {};
    T* const dropped = keep_ ? space_.hidden[0] : below;
    x = dropped;
    return drop<T>(stream(), size_, below, dropped, attributes_.dropout,
                   in<const std::int64_t>(static_cast<std::size_t>(at_.draw)), layer, false);
  }

  const KernelContext& context_;
  const RecurrentAttributes& attributes_;
  const RecurrentSizes size_;
  const RecurrentOperands at_;
  const std::vector<Product>& products_;
  const bool keep_;
  const RecurrentReserve<T> reserve_;
  const RecurrentForwardSpace<T> space_;
};

}  // namespace

detail::Ref<PreparedProducts> prepare_composed_recurrent(const MemoryQuery& query) {
  const RecurrentSizes size(query.inputs[0], query.attribute<RecurrentAttributes>());
  const RecurrentOperands at(query.attribute<RecurrentAttributes>());
  const Products products(size, query.wants(at.reserve), query.wants(0));
  auto prepared = detail::make_ref<PreparedProducts>();
  prepared->products.reserve(Products::kCount);
  for (std::size_t i = 0; i < Products::kCount; ++i) {
    const bool of_step = i == Products::kFirstStep || i == Products::kStep;
    prepared->products.emplace_back(products.shapes[i], Epilogue::none, query,
                                    of_step ? row_alignment(size.hidden, size.dtype) : 16);
  }
  return prepared;
}

Status composed_recurrent(const KernelContext& context, const PreparedProducts& prepared) noexcept {
  return for_floating(context.inputs[0].spec.dtype,
                      [&](auto type) { return Forward<decltype(type)>(context, prepared).run(); });
}

}  // namespace ebb::cuda
