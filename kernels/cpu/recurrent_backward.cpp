#include <cstring>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/recurrent.h"
#include "ebb/kernels/cpu/gemm.h"
#include "ebb/kernels/cpu/philox_words.h"
#include "ebb/kernels/cpu/recurrent_cell.h"
#include "ebb/kernels/cpu/recurrent_layout.h"

namespace ebb::cpu {
namespace {

// Workspace of backward, independent of the length of the sequence. The data of a chunk lie in the
// forward pass's reserve instead, if that may be destroyed: once a chunk's steps are done, its
// gates and cells are not read again. A GRU has no cells.
template <class T>
struct BackwardSpace {
  T* recurrent;  // the transpose of R of every layer, in strips [strip][columns, units]
  T* d_gates;    // [chunk, batch, 4, hidden]; null: over the gates
  T* scratch;    // [chunk, batch, the wider of in and hidden]; null: over the cells
  T* d_hidden;   // [layers, batch, hidden]: from a step to the step before, in strips of units
  T* d_cell;     // [layers, batch, hidden], of an LSTM
  void* sums;    // of column_sum
  std::size_t bytes;

  BackwardSpace(const RecurrentCut& size, bool destroys, void* base) noexcept {
    Carver carver(base);
    const auto take_unless = [&carver](bool elsewhere, std::int64_t elements) {
      return elsewhere ? nullptr : carver.take<T>(elements);
    };
    recurrent = carver.take<T>(size.layers * size.hidden * size.columns());
    d_gates = take_unless(destroys, size.chunk * 4 * size.state());
    scratch = take_unless(destroys && size.has_cell && size.in <= size.hidden,
                          size.chunk * size.batch * std::max(size.in, size.hidden));
    d_hidden = carver.take<T>(size.layers * size.state());
    d_cell = carver.take<T>(size.has_cell ? size.layers * size.state() : 0);
    sums = carver.take<std::byte>(  // enough for the last chunk, which has fewer rows
        static_cast<std::int64_t>(column_sum_bytes(size.chunk * size.batch, size.gates())));
    bytes = carver.bytes();
  }
};

constexpr auto kReserve = static_cast<std::size_t>(kRecurrentBackwardReserve);
constexpr auto kX = static_cast<std::size_t>(kRecurrentBackwardX);

template <class T>
class Backward {
 public:
  explicit Backward(const KernelContext& context) noexcept
      : of_(context),
        size_(context.inputs[kX].spec, of_.attributes),
        reserve_(size_, context.inputs[kReserve].data),
        space_(size_, context.destroys(kReserve), context.workspace),
        lengths_(of_.lengths()),
        lowest_(of_.lowest_layer()) {}

  void run() {
    for (std::int64_t layer = lowest_; layer < size_.layers; ++layer) {
      pack(layer);
      begin(space_.d_hidden, of_.d_hidden, layer);
      if (size_.has_cell) begin(space_.d_cell, of_.d_cell, layer);
    }
    if (size_.time == 0 || size_.batch == 0) clear_gradients();
    const std::int64_t last = (size_.time - 1) / size_.chunk * size_.chunk;
    for (std::int64_t t = last; t >= 0 && size_.time > 0; t -= size_.chunk)
      for (std::int64_t layer = size_.layers - 1; layer >= lowest_; --layer)
        run_chunk(layer, t, std::min(size_.chunk, size_.time - t));
    for (std::int64_t layer = lowest_; layer < size_.layers; ++layer) {
      end(of_.at.h0, space_.d_hidden, layer);
      gradient_of_unused_state(layer);
      if (size_.has_cell) end(of_.at.c0, space_.d_cell, layer);
    }
    if (size_.has_cell) return;
    for (std::int64_t layer = lowest_; layer < size_.layers; ++layer)
      if (T* db = of_.gradient(of_.at.b(layer)))  // q stands before n among the gates
        std::swap_ranges(db + 2 * size_.hidden, db + 3 * size_.hidden, db + 3 * size_.hidden);
  }

 private:
  void clear_gradients() const noexcept {
    for (std::size_t i = static_cast<std::size_t>(of_.at.weights);
         i < static_cast<std::size_t>(of_.at.count); ++i)
      if (T* to = of_.gradient(i)) std::memset(to, 0, of_.context.inputs[kX + i].spec.bytes());
  }

  // The transpose of R, cut into strips: it is the right factor of every step's product, and read
  // row by row it takes a product half the time.
  T* packed(std::int64_t layer, std::int64_t unit) const noexcept {
    return space_.recurrent + (layer * size_.hidden + unit) * size_.columns();
  }
  void pack(std::int64_t layer) const {
    const T* from = of_.in(of_.at.r(layer));
    const RecurrentCut& size = size_;
    constexpr std::int64_t kTile = 16;
    const std::int64_t tiles = divide_up(size.hidden, kTile);
    for_items(tiles, rows_per_piece(size.columns() * kTile), [&](std::int64_t tile) {
      const std::int64_t first = tile * kTile, count = std::min(kTile, size.hidden - first);
      const std::int64_t unit = first / size.strip * size.strip;  // strips are whole tiles
      const std::int64_t units = std::min(size.strip, size.hidden - unit);
      T* to = packed(layer, unit) + (first - unit);
      for (std::int64_t column = 0; column < size.columns(); ++column)
        for (std::int64_t j = 0; j < count; ++j)
          to[column * units + j] = from[(first + j) * size.columns() + column];
    });
  }

  // The state's gradients are kept in strips, as steps write them: [strip][batch, units].
  template <class Copy>
  void for_strips(const Copy& copy) const {
    for (std::int64_t unit = 0; unit < size_.hidden; unit += size_.strip) {
      const std::int64_t units = std::min(size_.strip, size_.hidden - unit);
      for (std::int64_t b = 0; b < size_.batch; ++b)
        copy(unit * size_.batch + b * units, b * size_.hidden + unit, units);
    }
  }
  void begin(T* state, const T* given, std::int64_t layer) const {
    const T* const from = of_.of_layer(given, layer);
    T* to = state + layer * size_.state();
    for_strips([&](std::int64_t strip, std::int64_t plain, std::int64_t units) {
      copy_units(advanced(from, plain), units, to + strip);
    });
  }
  void end(std::int64_t input, const T* state, std::int64_t layer) const {
    T* to = of_.state_gradient(input, layer);
    if (to == nullptr) return;
    for_strips([&](std::int64_t strip, std::int64_t plain, std::int64_t units) {
      std::copy_n(state + layer * size_.state() + strip, units, to + plain);
    });
  }

  // A sequence without steps ends with the state that it was given.
  void gradient_of_unused_state(std::int64_t layer) const {
    const T* const from = of_.of_layer(of_.d_hidden, layer);
    T* to = of_.state_gradient(of_.at.h0, layer);
    if (to == nullptr || lengths_ == nullptr) return;
    for (std::int64_t b = 0; b < size_.batch; ++b)
      if (lengths_[b] == 0)
        copy_units(advanced(from, b * size_.hidden), size_.hidden, to + b * size_.hidden);
  }

  // The gradients of a chunk's gates. They lie as the gates do.
  T* d_gates_from(std::int64_t layer, std::int64_t first) const noexcept {
    return space_.d_gates != nullptr ? space_.d_gates : reserve_.gates_at(layer, first);
  }
  // Holds one after the other, for a chunk of a layer: the last layer's hidden states, a step
  // behind; the layer's input; the gradient of this input, which the layer below then reads.
  T* scratch(std::int64_t layer, std::int64_t first) const noexcept {
    return space_.scratch != nullptr ? space_.scratch : reserve_.cells_at(layer, first);
  }

  void run_chunk(std::int64_t layer, std::int64_t first, std::int64_t steps) const {
    const bool last_chunk = first + steps == size_.time;
    run_steps(layer, first, steps);
    const std::int64_t rows = steps * size_.batch;
    const T* d_gates = d_gates_from(layer, first);
    if (T* db = of_.gradient(of_.at.b(layer)))
      column_sum(d_gates, rows, size_.gates(), db, space_.sums, !last_chunk);
    if (T* dr = of_.gradient(of_.at.r(layer)))
      recurrent_gradient(layer, first, steps, dr, !last_chunk);
    if (T* dw = of_.gradient(of_.at.w(layer))) {
      const std::int64_t width = size_.input(layer);
      const T* const x = chunk_input(layer, first, steps);
      for_input_columns([&](std::int64_t column, std::int64_t columns, std::int64_t gate) {
        multiply_all<T>(width, columns, rows, {x, width, true}, {d_gates + gate, size_.gates()},
                        dw + column, size_.columns(), !last_chunk);
      });
    }
    input_gradient(layer, first, steps);
  }

  // Calls body(column, columns, gate) for runs of columns of W whose gate gradients are contiguous,
  // from `gate` on. For an LSTM that is all columns; for a GRU r and z, then n, which has q before
  // it. (R's columns always are.)
  template <class Body>
  void for_input_columns(const Body& body) const {
    if (size_.has_cell) return body(std::int64_t{0}, size_.columns(), std::int64_t{0});
    body(std::int64_t{0}, 2 * size_.hidden, std::int64_t{0});
    body(2 * size_.hidden, size_.hidden, 3 * size_.hidden);
  }

  // d_hidden of step t - 1 from step t: d_gates of step t by the transpose of R, for one piece. It
  // reads all of these d_gates, which other pieces wrote. For a GRU it is added to the other part,
  // already there.
  void hand_back(std::int64_t layer, const T* d_gates, std::int64_t row, std::int64_t rows,
                 std::int64_t unit, std::int64_t units) const noexcept {
    multiply<T>(rows, units, size_.columns(), {d_gates + row * size_.gates(), size_.gates()},
                {packed(layer, unit), units},
                space_.d_hidden + layer * size_.state() + unit * size_.batch + row * units, units,
                !size_.has_cell);
  }

  // Computes d_gates of each step of a chunk, from the last to the first. Each piece of a step
  // begins with its own part of hand_back from the step after, so that threads meet only once a
  // step.
  void run_steps(std::int64_t layer, std::int64_t first, std::int64_t steps) const {
    const std::int64_t step_elements = 4 * size_.state();
    T* const d_gates_of_chunk = d_gates_from(layer, first);
    for (std::int64_t t = first + steps - 1; t >= first; --t) {
      T* d_gates = d_gates_of_chunk + (t - first) * step_elements;
      const bool continues = t + 1 < first + steps;
      size_.for_step_pieces(
          [&](std::int64_t row, std::int64_t rows, std::int64_t unit, std::int64_t units) {
            if (continues) hand_back(layer, d_gates + step_elements, row, rows, unit, units);
            step_piece(layer, first, t, d_gates, row, rows, unit, units);
          });
    }
    if (first == 0 && of_.state_gradient(of_.at.h0, layer) == nullptr) return;
    size_.for_step_pieces(
        [&](std::int64_t row, std::int64_t rows, std::int64_t unit, std::int64_t units) {
          hand_back(layer, d_gates_of_chunk, row, rows, unit, units);
        });
  }

  void step_piece(std::int64_t layer, std::int64_t first, std::int64_t t, T* d_gates,
                  std::int64_t row, std::int64_t rows, std::int64_t unit,
                  std::int64_t units) const noexcept {
    const bool is_last_layer = size_.is_last(layer);
    const T* from_above = is_last_layer ? of_.d_sequence : scratch(layer + 1, first);
    const bool has_cell = size_.has_cell;
    const T* cell_before = !has_cell ? nullptr
                           : t > 0   ? reserve_.cells_at(layer, t - 1)
                                     : of_.c0(layer);
    const T *gates = reserve_.gates_at(layer, t),
            *cell = has_cell ? reserve_.cells_at(layer, t) : nullptr;
    const std::int64_t strip = layer * size_.state() + unit * size_.batch;
    T* d_hidden = space_.d_hidden + strip;
    T* d_cell = has_cell ? space_.d_cell + strip : nullptr;
    for (std::int64_t b = row; b < row + rows; ++b) {
      const std::int64_t at = b * size_.hidden + unit;
      const RowLength length = row_length(lengths_, b, size_.time);
      if (t >= length.steps) {
        for (int gate = 0; gate < 4; ++gate)
          std::fill_n(d_gates + b * size_.gates() + gate * size_.hidden + unit, units, T(0));
        continue;  // past the row's last step: nothing to hand on
      }
      const T* d_after = d_hidden + b * units;
      if (t + 1 == length.steps && t + 1 < size_.time)
        d_after = advanced(of_.of_layer(of_.d_hidden, layer), at);
      const std::int64_t row_above =
          is_last_layer ? b * size_.time + t : (t - first) * size_.batch + b;
      cell_backward<T>(of_.attributes.cell,
                       {.gates = gates + b * size_.gates() + unit,
                        .cell = advanced(cell, at),
                        .cell_before = advanced(cell_before, at),
                        .hidden_before = has_cell ? nullptr : hidden_before(layer, t, b, unit),
                        .d_hidden = d_after,
                        .d_output = advanced(from_above, row_above * size_.hidden + unit),
                        .d_cell = advanced(d_cell, b * units),
                        .d_kept = d_hidden + b * units,
                        .d_gates = d_gates + b * size_.gates() + unit,
                        .stride = size_.hidden},
                       units);
    }
  }

  // h of row b before step t, from `unit` on.
  const T* hidden_before(std::int64_t layer, std::int64_t t, std::int64_t b,
                         std::int64_t unit) const noexcept {
    const std::int64_t at = b * size_.hidden + unit;
    if (t == 0) return advanced(of_.h0(layer), at);
    if (!size_.is_last(layer)) return reserve_.hidden_at(layer, t - 1) + at;
    return of_.sequence + (b * size_.time + t - 1) * size_.hidden + unit;
  }

  // dR += the sum over steps of h_{t-1}^T d_gates_t, as one product over the chunk.
  void recurrent_gradient(std::int64_t layer, std::int64_t first, std::int64_t steps, T* dr,
                          bool accumulate) const {
    const auto add = [&](const T* hidden, const T* d_gates, std::int64_t rows) {
      multiply_all<T>(size_.hidden, size_.columns(), rows, {hidden, size_.hidden, true},
                      {d_gates, size_.gates()}, dr, size_.columns(), accumulate);
      accumulate = true;
    };
    const T* d_gates = d_gates_from(layer, first);
    T* const behind = scratch(layer, first);
    if (first == 0) {
      const T* h0 = of_.h0(layer);
      add(h0, d_gates, h0 == nullptr ? 0 : size_.batch);
      d_gates += 4 * size_.state();
      --steps;
      if (steps == 0) return;
      ++first;
    }
    const T* before;
    if (size_.is_last(layer)) {
      to_time_major(of_.sequence, size_.hidden, first - 1, steps, behind);
      before = behind;
    } else {
      before = reserve_.hidden_at(layer, first - 1);
    }
    add(before, d_gates, steps * size_.batch);
  }

  // The rows of a sequence [batch, time, width], time-major.
  void to_time_major(const T* from, std::int64_t width, std::int64_t t, std::int64_t steps,
                     T* to) const {
    size_.for_chunk_rows(width, t, steps, [=](std::int64_t row, std::int64_t at) {
      std::copy_n(from + at, width, to + row);
    });
  }
  // Dropout of a layer's input. to may be from.
  void drop_steps(std::int64_t layer, const T* from, T* to, std::int64_t t,
                  std::int64_t steps) const {
    const auto* draw = of_.template draw<std::uint64_t>();
    const double probability = of_.attributes.dropout;
    const std::int64_t width = size_.hidden, first = layer * kRecurrentLayerElements;
    size_.for_chunk_rows(width, t, steps, [=](std::int64_t row, std::int64_t at) {
      drop(from + row, to + row, width, probability, draw, first + at);
    });
  }

  const T* chunk_input(std::int64_t layer, std::int64_t t, std::int64_t steps) const {
    T* const input = scratch(layer, t);
    if (layer == 0) {
      if (size_.batch == 1) return of_.in(0) + t * size_.in;
      to_time_major(of_.in(0), size_.in, t, steps, input);
      return input;
    }
    const T* below = reserve_.hidden_at(layer - 1, t);
    if (!size_.drops(layer)) return below;
    drop_steps(layer, below, input, t, steps);
    return input;
  }

  void input_gradient(std::int64_t layer, std::int64_t first, std::int64_t steps) const {
    T* dx = layer == 0 ? of_.gradient(0) : nullptr;
    if (layer == lowest_ && dx == nullptr) return;
    T* to = scratch(layer, first);
    const std::int64_t width = size_.input(layer);
    for_input_columns([&](std::int64_t column, std::int64_t columns, std::int64_t gate) {
      multiply_all<T>(
          steps * size_.batch, width, columns, {d_gates_from(layer, first) + gate, size_.gates()},
          {of_.in(of_.at.w(layer)) + column, size_.columns(), true}, to, width, column > 0);
    });
    if (dx != nullptr) {
      size_.for_chunk_rows(width, first, steps, [=](std::int64_t row, std::int64_t at) {
        std::copy_n(to + row, width, dx + at);
      });
    } else if (size_.drops(layer)) {
      drop_steps(layer, to, to, first, steps);
    }
  }

  const RecurrentBackwardCall<T> of_;
  const RecurrentCut size_;
  const RecurrentReserve<T> reserve_;
  const BackwardSpace<T> space_;
  const std::int64_t* const lengths_;
  const std::int64_t lowest_;  // the lowest layer that must be gone through
};

}  // namespace

Status recurrent_backward(const KernelContext& context) {
  return for_wide(context.inputs[kX].spec.dtype, [&]<class T>(T) { Backward<T>(context).run(); });
}

MemoryNeeds recurrent_backward_memory(const MemoryQuery& query) {
  const RecurrentCut size(query.inputs[kX], query.attribute<RecurrentAttributes>());
  const bool destroys = query.destroys(kReserve);
  return {.workspace_bytes = query.inputs[kX].dtype == DType::f64
                                 ? BackwardSpace<double>(size, destroys, nullptr).bytes
                                 : BackwardSpace<float>(size, destroys, nullptr).bytes};
}

}  // namespace ebb::cpu
