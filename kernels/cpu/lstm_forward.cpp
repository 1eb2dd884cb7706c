#include <cstring>

#include "ebb/core/kernels/lstm.h"
#include "ebb/kernels/cpu/dispatch.h"
#include "ebb/kernels/cpu/gemm.h"
#include "ebb/kernels/cpu/lstm_cell.h"
#include "ebb/kernels/cpu/lstm_layout.h"

namespace ebb::cpu {
namespace {

// Workspace of forward, independent of the length of the sequence.
template <class T>
struct ForwardSpace {
  LstmSizes size;
  bool keep;     // there is a reserve
  T* recurrent;  // R of every layer, cut into strips [strip][hidden, 4, units]; only with several
                 // strips
  T* input;      // [chunk, batch, in]: a chunk of a layer's input, time-major
  T* gates;      // [chunk, batch, 4, hidden], without a reserve
  T* product;    // [strip][batch, 4, units]: h R of a step
  T* hidden;     // h of each layer that the reserve does not hold: a ring of steps
  T* cells;      // [layers, batch, hidden], without a reserve
  std::size_t bytes;

  ForwardSpace(const LstmSizes& sizes, bool with_reserve, void* base) noexcept
      : size(sizes), keep(with_reserve) {
    Carver carver(base);
    recurrent = carver.take<T>(size.strips > 1 ? size.layers * size.hidden * size.gates() : 0);
    input = carver.take<T>(size.chunk * size.batch *
                           (size.has_dropout ? size.widest_input() : size.in));
    gates = carver.take<T>(keep ? 0 : size.chunk * 4 * size.state());
    product = carver.take<T>(4 * size.state());
    hidden = carver.take<T>((keep ? 2 : ring() * (size.layers - 1) + 2) * size.state());
    cells = carver.take<T>(keep ? 0 : size.layers * size.state());
    bytes = carver.bytes();
  }
  // Steps of a lower layer's h: a chunk, one after the other, for the product of the layer above;
  // at least two, since a step reads the one before while it writes its own.
  std::int64_t ring() const noexcept { return std::max<std::int64_t>(2, size.chunk); }
};

template <class T>
class Forward {
 public:
  explicit Forward(const KernelContext& context) noexcept
      : context_(context),
        attributes_(context.attribute<LstmAttributes>()),
        size_(context.inputs[0].spec.shape, attributes_),
        at_(attributes_),
        reserve_(size_, context.outputs[3].data),
        space_(size_, context.outputs[3].data != nullptr, context.workspace) {}

  void run() {
    if (size_.strips > 1)
      for (std::int64_t layer = 0; layer < size_.layers; ++layer) pack(layer);
    for (std::int64_t t = 0; t < size_.time; t += size_.chunk)
      for (std::int64_t layer = 0; layer < size_.layers; ++layer)
        run_chunk(layer, t, std::min(size_.chunk, size_.time - t));
    for (std::int64_t layer = 0; layer < size_.layers; ++layer) {
      put_state(context_.outputs[1], layer, hidden_at(layer, size_.time - 1));
      put_state(context_.outputs[2], layer, cell_at(layer, size_.time - 1));
    }
  }

 private:
  const T* in(std::size_t index) const noexcept {
    return context_.inputs[index].template as<const T>();
  }
  bool is_last(std::int64_t layer) const noexcept { return layer + 1 == size_.layers; }

  // h and c after step t; step -1 is the initial state, null for zeros.
  T* hidden_at(std::int64_t layer, std::int64_t t) const noexcept {
    if (t < 0) return initial(at_.h0, layer);
    if (is_last(layer)) {
      T* base = space_.hidden + (space_.keep ? 0 : space_.ring() * layer) * size_.state();
      return base + t % 2 * size_.state();
    }
    if (space_.keep) return reserve_.hidden_at(layer, t);
    return space_.hidden + (space_.ring() * layer + t % space_.ring()) * size_.state();
  }
  T* cell_at(std::int64_t layer, std::int64_t t) const noexcept {
    if (t < 0) return initial(at_.c0, layer);
    return space_.keep ? reserve_.cells_at(layer, t) : space_.cells + layer * size_.state();
  }
  T* initial(std::int64_t index, std::int64_t layer) const noexcept {
    if (index < 0) return nullptr;
    return context_.inputs[static_cast<std::size_t>(index)].template as<T>() +
           layer * size_.state();
  }
  void put_state(const Buffer& out, std::int64_t layer, const T* state) const noexcept {
    if (out.data == nullptr || size_.state() == 0) return;
    T* to = out.as<T>() + layer * size_.state();
    const std::size_t bytes = static_cast<std::size_t>(size_.state()) * sizeof(T);
    if (state == nullptr) {
      std::memset(to, 0, bytes);
    } else {
      std::memcpy(to, state, bytes);
    }
  }

  T* packed(std::int64_t layer, std::int64_t unit) const noexcept {
    return space_.recurrent + (layer * size_.gates() + 4 * unit) * size_.hidden;
  }
  // A piece of a step multiplies by its columns of R alone: side by side they take a product less
  // time than four times a quarter of them, a row apart.
  void pack(std::int64_t layer) const {
    const T* from = in(at_.r(layer));
    const LstmSizes& size = size_;
    Workers::instance().run(size.strips, [&](std::int64_t piece) {
      const std::int64_t unit = piece * size.strip,
                         units = std::min(size.strip, size.hidden - unit);
      T* to = packed(layer, unit);
      for (std::int64_t row = 0; row < size.hidden; ++row)
        for (std::int64_t gate = 0; gate < 4; ++gate, to += units)
          std::copy_n(from + (row * 4 + gate) * size.hidden + unit, units, to);
    });
  }

  const T* chunk_input(std::int64_t layer, std::int64_t t, std::int64_t steps) const {
    if (layer == 0) {
      if (size_.batch == 1) return in(0) + t * size_.in;
      to_time_major(size_, in(0), size_.in, t, steps, space_.input);
      return space_.input;
    }
    const T* below = hidden_at(layer - 1, t);
    if (!size_.drops(layer)) return below;
    const auto* draw =
        context_.inputs[static_cast<std::size_t>(at_.draw)].template as<const std::int64_t>();
    drop_steps(size_, below, space_.input, t, steps, attributes_.dropout,
               static_cast<std::uint64_t>(draw[0]), static_cast<std::uint64_t>(draw[1] + layer));
    return space_.input;
  }

  void run_chunk(std::int64_t layer, std::int64_t first, std::int64_t steps) const {
    T* gates = space_.keep ? reserve_.gates_at(layer, first) : space_.gates;
    const std::int64_t width = size_.input(layer);
    multiply_all<T>(steps * size_.batch, size_.gates(), width,
                    {chunk_input(layer, first, steps), width}, {in(at_.w(layer)), size_.gates()},
                    gates, size_.gates());
    for (std::int64_t t = first; t < first + steps; ++t)
      step(layer, t, gates + (t - first) * 4 * size_.state());
  }

  void step(std::int64_t layer, std::int64_t t, T* gates) const {
    const T* hidden_before = hidden_at(layer, t - 1);
    const T* cell_before = cell_at(layer, t - 1);
    const T* bias = in(at_.b(layer));
    T *hidden = hidden_at(layer, t), *cell = cell_at(layer, t);
    T* sequence = is_last(layer) ? context_.outputs[0].template as<T>() : nullptr;
    const LstmSizes& size = size_;
    size.for_step_pieces([&](std::int64_t row, std::int64_t rows, std::int64_t unit,
                             std::int64_t units) {
      T* product = space_.product + 4 * (unit * size.batch + row * units);
      if (hidden_before != nullptr) {
        const T* recurrent = size.strips > 1 ? packed(layer, unit) : in(at_.r(layer));
        multiply<T>(rows, 4 * units, size.hidden, {hidden_before + row * size.hidden, size.hidden},
                    {recurrent, 4 * units}, product, 4 * units, false);
      }
      for (std::int64_t b = row; b < row + rows; ++b) {
        const std::int64_t at = b * size.hidden + unit;
        cell_forward<T>(
            {.gates = gates + b * size.gates() + unit,
             .recurrent = hidden_before == nullptr ? nullptr : product + (b - row) * 4 * units,
             .bias = bias + unit,
             .cell_before = cell_before == nullptr ? nullptr : cell_before + at,
             .cell = cell + at,
             .hidden = hidden + at,
             .sequence = sequence == nullptr ? nullptr
                                             : sequence + (b * size.time + t) * size.hidden + unit,
             .stride = size.hidden,
             .recurrent_stride = units,
             .keep = space_.keep},
            units);
      }
    });
  }

  const KernelContext& context_;
  const LstmAttributes& attributes_;
  LstmSizes size_;
  LstmOperands at_;
  LstmReserve<T> reserve_;
  ForwardSpace<T> space_;
};

}  // namespace

void lstm(const KernelContext& context) {
  for_floating(context.inputs[0].spec.dtype,
               [&](auto type) { Forward<decltype(type)>(context).run(); });
}

// The workspace is that of a run with a reserve or that of one without, whichever is larger:
// whether the reserve is wanted is not known here.
MemoryNeeds lstm_memory(const MemoryQuery& query) {
  MemoryNeeds needs;
  for_floating(query.inputs[0].dtype, [&](auto type) {
    using T = decltype(type);
    const LstmSizes size(query.inputs[0].shape, query.attribute<LstmAttributes>());
    needs.workspace_bytes = std::max(ForwardSpace<T>(size, true, nullptr).bytes,
                                     ForwardSpace<T>(size, false, nullptr).bytes);
    needs.reserve_bytes = LstmReserve<T>(size, nullptr).bytes;
  });
  return needs;
}

}  // namespace ebb::cpu
