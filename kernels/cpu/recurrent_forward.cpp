#include <algorithm>
#include <limits>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/recurrent.h"
#include "ebb/kernels/cpu/gemm.h"
#include "ebb/kernels/cpu/philox_words.h"
#include "ebb/kernels/cpu/recurrent_cell.h"
#include "ebb/kernels/cpu/recurrent_layout.h"

namespace ebb::cpu {
namespace {

// Workspace of forward: it does not grow with the sequence.
template <class T>
struct ForwardSpace {
  T* weights;  // W and R of every layer, cut into strips [strip][in or hidden, parts, units]; only
               // with several strips
  T* product;  // [strip][batch, products, units]: a step's x W and h R
  T* hidden;   // [layers, 2, batch, hidden]: h of this step and the one before, where no reserve
               // holds it
  T* dropped;  // [2, batch, hidden]: h of this step as the layer above sees it, with dropout;
               // layers take turns
  T* cells;    // [layers, batch, hidden], without a reserve
  std::size_t bytes;

  ForwardSpace(const RecurrentCut& size, bool keep, void* base) noexcept {
    Carver carver(base);
    const std::int64_t rows = size.in + size.layers * size.hidden + (size.layers - 1) * size.hidden;
    weights = carver.take<T>(size.strips > 1 ? rows * size.columns() : 0);
    product = carver.take<T>(size.products() * size.state());
    hidden = carver.take<T>((keep ? 1 : size.layers) * 2 * size.state());
    dropped = carver.take<T>(size.has_dropout ? 2 * size.state() : 0);
    cells = carver.take<T>(keep || !size.has_cell ? 0 : size.layers * size.state());
    bytes = carver.bytes();
  }
};

template <class T>
class Forward {
 public:
  explicit Forward(const KernelContext& context) noexcept
      : of_(context),
        size_(context.inputs[0].spec, of_.attributes),
        keep_(context.outputs[of_.at.reserve].data != nullptr),
        reserve_(size_, context.outputs[of_.at.reserve].data),
        space_(size_, keep_, context.workspace),
        lengths_(of_.lengths()) {}

  void run() {
    if (size_.strips > 1 && size_.time > 0)
      for (std::int64_t layer = 0; layer < size_.layers; ++layer) {
        pack(of_.in(of_.at.w(layer)), size_.input(layer), packed_w(layer));
        pack(of_.in(of_.at.r(layer)), size_.hidden, packed_r(layer));
      }
    for (std::int64_t t = 0; t < size_.time; ++t)
      for (std::int64_t layer = 0; layer < size_.layers; ++layer) step(layer, t);
    for (std::int64_t layer = 0; layer < size_.layers; ++layer) {
      if (lengths_ != nullptr && size_.time > 0) break;  // each row has put its own
      put(1, layer, 0, hidden_before(layer, size_.time), size_.state());
      if (size_.has_cell) put(2, layer, 0, cell_before(layer, size_.time), size_.state());
    }
  }

 private:
  static constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

  // h, and an LSTM's c, after step t, and before it: null for an initial state of zeros.
  T* hidden_at(std::int64_t layer, std::int64_t t) const noexcept {
    if (keep_ && !size_.is_last(layer)) return reserve_.hidden_at(layer, t);
    return space_.hidden + ((keep_ ? 0 : 2 * layer) + t % 2) * size_.state();
  }
  T* cell_at(std::int64_t layer, std::int64_t t) const noexcept {
    return keep_ ? reserve_.cells_at(layer, t) : space_.cells + layer * size_.state();
  }
  const T* hidden_before(std::int64_t layer, std::int64_t t) const noexcept {
    return t == 0 ? of_.h0(layer) : hidden_at(layer, t - 1);
  }
  const T* cell_before(std::int64_t layer, std::int64_t t) const noexcept {
    return t == 0 ? of_.c0(layer) : cell_at(layer, t - 1);
  }
  // The input of a layer above the first, with dropout.
  T* dropped(std::int64_t layer) const noexcept {
    return space_.dropped + layer % 2 * size_.state();
  }
  // Writes `units` units of a layer's state, from `at` on, to the output; state: null for zeros.
  void put(std::size_t output, std::int64_t layer, std::int64_t at, const T* state,
           std::int64_t units) const noexcept {
    if (T* const to = of_.last(output, layer)) copy_units(advanced(state, at), units, to + at);
  }

  T* packed_w(std::int64_t layer) const noexcept {
    const std::int64_t rows_before = layer == 0 ? 0 : size_.in + (2 * layer - 1) * size_.hidden;
    return space_.weights + rows_before * size_.columns();
  }
  T* packed_r(std::int64_t layer) const noexcept {
    return packed_w(layer) + size_.input(layer) * size_.columns();
  }
  // Cuts a weight into strips. A piece of a step multiplies by its own columns; contiguous they
  // take less time than gate by gate in the whole weight, with a stride.
  void pack(const T* from, std::int64_t rows, T* packed) const {
    const RecurrentCut& size = size_;
    Workers::instance().run(size.strips, [&](std::int64_t piece) {
      const std::int64_t unit = piece * size.strip,
                         units = std::min(size.strip, size.hidden - unit);
      T* to = packed + size.parts() * unit * rows;
      for (std::int64_t row = 0; row < rows; ++row)
        for (std::int64_t part = 0; part < size.parts(); ++part, to += units)
          std::copy_n(from + (row * size.parts() + part) * size.hidden + unit, units, to);
    });
  }
  // The columns of a weight for the strip that begins at `unit`.
  Factor<T> strip_of(const T* whole, const T* packed, std::int64_t rows, std::int64_t unit,
                     std::int64_t units) const noexcept {
    return size_.strips > 1 ? Factor<T>{packed + size_.parts() * unit * rows, size_.parts() * units}
                            : Factor<T>{whole, size_.columns()};
  }

  // One step of one layer. A piece multiplies its rows of x and h by its columns of W and R and
  // computes its gates at once: of its results other pieces read only h.
  void step(std::int64_t layer, std::int64_t t) const {
    const std::int64_t width = size_.input(layer);
    const T* x = layer == 0           ? of_.in(0) + t * width
                 : size_.drops(layer) ? dropped(layer)
                                      : hidden_at(layer - 1, t);
    const std::int64_t x_stride = layer == 0 ? size_.time * width : width;
    const bool has_cell = size_.has_cell;
    const T* const hidden_before = this->hidden_before(layer, t);
    const T* const cell_before = has_cell ? this->cell_before(layer, t) : nullptr;
    T *hidden = hidden_at(layer, t), *cell = has_cell ? cell_at(layer, t) : nullptr;
    T* sequence = size_.is_last(layer) ? of_.context.outputs[0].template as<T>() : nullptr;
    T* gates = keep_ ? reserve_.gates_at(layer, t) : nullptr;
    const RecurrentCut& size = size_;
    size.for_step_pieces([&](std::int64_t row, std::int64_t rows, std::int64_t unit,
                             std::int64_t units) {
      const std::int64_t columns = size.parts() * units, step = size.products() * units;
      T* const product = space_.product + size.products() * (unit * size.batch + row * units);
      T* const recurrent = has_cell ? product : product + columns;
      multiply<T>(rows, columns, width, {x + row * x_stride, x_stride},
                  strip_of(of_.in(of_.at.w(layer)), packed_w(layer), width, unit, units), product,
                  step, false);
      if (hidden_before != nullptr)
        multiply<T>(rows, columns, size.hidden, {hidden_before + row * size.hidden, size.hidden},
                    strip_of(of_.in(of_.at.r(layer)), packed_r(layer), size.hidden, unit, units),
                    recurrent, step, has_cell);
      for (std::int64_t b = row; b < row + rows; ++b) {
        const std::int64_t at = b * size.hidden + unit,
                           element = (b * size.time + t) * size.hidden + unit;
        const RowLength length = row_length(lengths_, b, size.time);
        if (t == 0 && length.steps == 0) {
          put(1, layer, at, hidden_before, units);
          if (has_cell) put(2, layer, at, cell_before, units);
        }
        if (t >= length.steps) {
          // Gradient products read h, so it must be set; nobody reads the gates, cells and dropped
          // values.
          std::fill_n(hidden + at, units, T(0));
          if (sequence != nullptr) std::fill_n(sequence + element, units, T(0));
          continue;
        }
        cell_forward<T>(
            of_.attributes.cell,
            {.product = product + (b - row) * step,
             .recurrent = hidden_before == nullptr ? nullptr : recurrent + (b - row) * step,
             .bias = of_.in(of_.at.b(layer)) + unit,
             .cell_before = advanced(cell_before, at),
             .hidden_before = advanced(hidden_before, at),
             .gates = advanced(gates, b * size.gates() + unit),
             .cell = advanced(cell, at),
             .hidden = hidden + at,
             .sequence = advanced(sequence, element),
             .stride = size.hidden,
             .product_stride = units},
            units);
        if (!length.is_valid) {
          std::fill_n(hidden + at, units, kNan);
          if (has_cell) std::fill_n(cell + at, units, kNan);
          for (int gate = 0; gates != nullptr && gate < 4; ++gate)
            std::fill_n(gates + b * size.gates() + gate * size.hidden + unit, units, kNan);
          if (sequence != nullptr) std::fill_n(sequence + element, units, kNan);
        }
        if (lengths_ != nullptr && t + 1 == length.steps) {
          put(1, layer, at, hidden, units);
          if (has_cell) put(2, layer, at, cell, units);
        }
        if (!size.is_last(layer) && size.has_dropout)
          drop(hidden + at, dropped(layer + 1) + at, units, of_.attributes.dropout,
               of_.template draw<std::uint64_t>(), (layer + 1) * kRecurrentLayerElements + element);
      }
    });
  }

  const RecurrentCall<T> of_;
  const RecurrentCut size_;
  const bool keep_;
  const RecurrentReserve<T> reserve_;
  const ForwardSpace<T> space_;
  const std::int64_t* const lengths_;
};

}  // namespace

Status recurrent(const KernelContext& context) {
  return for_wide(context.inputs[0].spec.dtype, [&]<class T>(T) { Forward<T>(context).run(); });
}

MemoryNeeds recurrent_memory(const MemoryQuery& query) {
  const auto& attributes = query.attribute<RecurrentAttributes>();
  const RecurrentCut size(query.inputs[0], attributes);
  const bool keep = query.wants(RecurrentOperands(attributes).reserve);
  const auto needs = [&]<class T>(T) -> MemoryNeeds {
    return {.workspace_bytes = ForwardSpace<T>(size, keep, nullptr).bytes,
            .reserve_bytes = RecurrentReserve<T>(size, nullptr).bytes};
  };
  return query.inputs[0].dtype == DType::f64 ? needs(double{}) : needs(float{});
}

}  // namespace ebb::cpu
