#include "ebb/tests/emulated_cuda/cudnn/lstm.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ebb/tests/emulated_cuda/cublaslt/gemm.h"
#include "ebb/tests/emulated_cuda/cudnn/widened.h"

namespace ebb::emulated {
namespace {

template <class T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

// Everything of one layer; rows of its input and output are time-major here.
template <class T>
struct Layer {
  Layer(const LstmShape& shape, const LstmPlaces<T>& places, std::int64_t index)
      : shape(shape),
        places(places),
        where(shape.rnn),
        index(index),
        hidden(shape.rnn.hidden),
        width(where.width(index)),
        batch(shape.batch) {
    const std::int64_t steps = shape.rows() * hidden;
    gates = places.reserve + index * 5 * steps;
    cells = gates + 4 * steps;
    const auto state = [&](const T* of) { return of ? of + index * batch * hidden : nullptr; };
    h0 = state(places.hx);
    c0 = state(places.cx);
  }
  // Where hidden states of a layer below the last are kept.
  T* kept() const {
    return places.reserve + shape.rnn.layers * 5 * shape.rows() * hidden +
           index * shape.rows() * hidden;
  }
  T state_at(const T* first, const std::vector<T>& all, std::int64_t step, std::int64_t row,
             std::int64_t unit) const {
    if (step > 0) return all[static_cast<std::size_t>(((step - 1) * batch + row) * hidden + unit)];
    return first ? first[row * hidden + unit] : T{0};
  }
  T cell_before(std::int64_t step, std::int64_t row, std::int64_t unit) const {
    if (step > 0) return cells[((step - 1) * batch + row) * hidden + unit];
    return c0 ? c0[row * hidden + unit] : T{0};
  }

  const LstmShape& shape;
  const LstmPlaces<T>& places;
  const WeightPlaces where;
  const std::int64_t index, hidden, width, batch;
  T *gates, *cells;  // [time, batch, 4 hidden], [time, batch, hidden]
  const T *h0, *c0;
};

// Rows as the caller has them, time-major, and back.
template <class T>
std::vector<T> rows_of(const LstmShape& shape, const T* data, std::int64_t width) {
  std::vector<T> rows(static_cast<std::size_t>(shape.rows() * width));
  for (std::int64_t step = 0; step < shape.steps; ++step)
    for (std::int64_t i = 0; i < shape.batch; ++i)
      for (std::int64_t unit = 0; unit < width; ++unit)
        rows[static_cast<std::size_t>((step * shape.batch + i) * width + unit)] =
            data[shape.row(step, i) * width + unit];
  return rows;
}
template <class T>
void put_rows(const LstmShape& shape, const std::vector<T>& rows, std::int64_t width, T* data) {
  for (std::int64_t step = 0; step < shape.steps; ++step)
    for (std::int64_t i = 0; i < shape.batch; ++i)
      for (std::int64_t unit = 0; unit < width; ++unit)
        data[shape.row(step, i) * width + unit] =
            rows[static_cast<std::size_t>((step * shape.batch + i) * width + unit)];
}

// rows(n, k) times matrix(k, m), row by row.
template <class T>
std::vector<T> product(const T* rows, std::int64_t n, std::int64_t k, MatrixView<const T> matrix,
                       std::int64_t m) {
  std::vector<T> out(static_cast<std::size_t>(n * m));
  multiply<T>(m, n, k, {matrix.data, matrix.column_step, matrix.row_step}, {rows, 1, k},
              out.data());
  return out;
}

template <class T>
std::vector<T> forward_layer(const Layer<T>& layer, const std::vector<T>& input) {
  const auto& [shape, places, where, index, hidden, width, batch, gates, cells, h0, c0] = layer;
  const T* const w = places.weights + where.input_matrix(index);
  const T* const r = places.weights + where.hidden_matrix(index);
  const auto from_input = product<T>(input.data(), shape.rows(), width, {w, 1, width}, 4 * hidden);
  std::vector<T> output(static_cast<std::size_t>(shape.rows() * hidden));
  std::vector<T> before(static_cast<std::size_t>(batch * hidden));
  for (std::int64_t step = 0; step < shape.steps; ++step) {
    for (std::int64_t i = 0; i < batch; ++i)
      for (std::int64_t unit = 0; unit < hidden; ++unit)
        before[static_cast<std::size_t>(i * hidden + unit)] =
            layer.state_at(h0, output, step, i, unit);
    const auto from_hidden = product<T>(before.data(), batch, hidden, {r, 1, hidden}, 4 * hidden);
    for (std::int64_t i = 0; i < batch; ++i)
      for (std::int64_t unit = 0; unit < hidden; ++unit) {
        const std::int64_t row = step * batch + i;
        T gate[4];
        for (std::int64_t g = 0; g < 4; ++g) {
          const std::int64_t column = g * hidden + unit;
          T sum = from_input[static_cast<std::size_t>(row * 4 * hidden + column)] +
                  from_hidden[static_cast<std::size_t>(i * 4 * hidden + column)];
          if (where.has_input_bias()) sum += places.weights[where.input_bias(index) + column];
          if (where.has_hidden_bias()) sum += places.weights[where.hidden_bias(index) + column];
          gate[g] = g == 2 ? std::tanh(sum) : sigmoid(sum);
          gates[row * 4 * hidden + column] = gate[g];
        }
        const T cell = gate[1] * layer.cell_before(step, i, unit) + gate[0] * gate[2];
        cells[row * hidden + unit] = cell;
        output[static_cast<std::size_t>(row * hidden + unit)] = gate[3] * std::tanh(cell);
      }
  }
  return output;
}

// From the gradient of a layer's output to that of its input; gates' gradients replace the gates.
template <class T>
std::vector<T> backward_layer(const Layer<T>& layer, const std::vector<T>& d_output) {
  const auto& [shape, places, where, index, hidden, width, batch, gates, cells, h0, c0] = layer;
  const T* const w = places.weights + where.input_matrix(index);
  const T* const r = places.weights + where.hidden_matrix(index);
  const auto size = static_cast<std::size_t>(batch * hidden);
  std::vector<T> dh(size), dc(size);
  const std::int64_t offset = index * batch * hidden;
  if (places.dhy) dh.assign(places.dhy + offset, places.dhy + offset + batch * hidden);
  if (places.dcy) dc.assign(places.dcy + offset, places.dcy + offset + batch * hidden);
  for (std::int64_t step = shape.steps - 1; step >= 0; --step) {
    for (std::int64_t i = 0; i < batch; ++i)
      for (std::int64_t unit = 0; unit < hidden; ++unit) {
        const std::int64_t row = step * batch + i;
        const auto at = static_cast<std::size_t>(i * hidden + unit);
        T* const gate = gates + row * 4 * hidden + unit;
        const T in = gate[0], forget = gate[hidden], fresh = gate[2 * hidden],
                out = gate[3 * hidden];
        const T turned = std::tanh(cells[row * hidden + unit]);
        const T d_hidden = dh[at] + d_output[static_cast<std::size_t>(row * hidden + unit)];
        const T d_cell = dc[at] + d_hidden * out * (1 - turned * turned);
        gate[0] = d_cell * fresh * in * (1 - in);
        gate[hidden] = d_cell * layer.cell_before(step, i, unit) * forget * (1 - forget);
        gate[2 * hidden] = d_cell * in * (1 - fresh * fresh);
        gate[3 * hidden] = d_hidden * turned * out * (1 - out);
        dc[at] = d_cell * forget;
      }
    dh = product<T>(gates + step * batch * 4 * hidden, batch, 4 * hidden, {r, hidden, 1}, hidden);
  }
  if (places.dhx) std::copy(dh.begin(), dh.end(), places.dhx + offset);
  if (places.dcx) std::copy(dc.begin(), dc.end(), places.dcx + offset);
  return product<T>(gates, shape.rows(), 4 * hidden, {w, width, 1}, width);
}

template <class T>
void add(const std::vector<T>& values, T* to) {
  for (std::size_t i = 0; i < values.size(); ++i) to[i] += values[i];
}

template <class T>
void add_weight_gradients(const Layer<T>& layer, const std::vector<T>& input,
                          const std::vector<T>& output) {
  const auto& [shape, places, where, index, hidden, width, batch, gates, cells, h0, c0] = layer;
  const std::int64_t rows = shape.rows();
  std::vector<T> before(static_cast<std::size_t>(rows * hidden));
  for (std::int64_t step = 0; step < shape.steps; ++step)
    for (std::int64_t i = 0; i < batch; ++i)
      for (std::int64_t unit = 0; unit < hidden; ++unit)
        before[static_cast<std::size_t>((step * batch + i) * hidden + unit)] =
            layer.state_at(h0, output, step, i, unit);
  // Sums over rows: of a gate's gradient times an input.
  const auto sums = [&](const std::vector<T>& factor, std::int64_t columns) {
    std::vector<T> out(static_cast<std::size_t>(4 * hidden * columns));
    multiply<T>(columns, 4 * hidden, rows, {factor.data(), 1, columns}, {gates, 4 * hidden, 1},
                out.data());
    return out;
  };
  add(sums(input, width), places.dweights + where.input_matrix(index));
  add(sums(before, hidden), places.dweights + where.hidden_matrix(index));
  const auto biases = sums(std::vector<T>(static_cast<std::size_t>(rows), T{1}), 1);
  if (where.has_input_bias()) add(biases, places.dweights + where.input_bias(index));
  if (where.has_hidden_bias()) add(biases, places.dweights + where.hidden_bias(index));
}

template <class T>
void forward(const LstmShape& shape, const LstmPlaces<T>& places) {
  std::vector<T> rows = rows_of(shape, places.x, shape.rnn.in);
  const std::int64_t state = shape.batch * shape.rnn.hidden;
  for (std::int64_t index = 0; index < shape.rnn.layers; ++index) {
    const Layer<T> layer(shape, places, index);
    rows = forward_layer(layer, rows);
    if (index + 1 < shape.rnn.layers) std::copy(rows.begin(), rows.end(), layer.kept());
    if (places.hy) std::copy(rows.end() - state, rows.end(), places.hy + index * state);
    if (places.cy) {
      const T* const last = layer.cells + (shape.steps - 1) * state;
      std::copy(last, last + state, places.cy + index * state);
    }
  }
  put_rows(shape, rows, shape.rnn.hidden, places.y);
}

template <class T>
void backward_data(const LstmShape& shape, const LstmPlaces<T>& places) {
  std::vector<T> rows = rows_of(shape, places.dy, shape.rnn.hidden);
  for (std::int64_t index = shape.rnn.layers - 1; index >= 0; --index)
    rows = backward_layer(Layer<T>(shape, places, index), rows);
  put_rows(shape, rows, shape.rnn.in, places.dx);
}

template <class T>
void backward_weights(const LstmShape& shape, const LstmPlaces<T>& places) {
  std::vector<T> input = rows_of(shape, places.x, shape.rnn.in);
  for (std::int64_t index = 0; index < shape.rnn.layers; ++index) {
    const Layer<T> layer(shape, places, index);
    std::vector<T> output =
        index + 1 == shape.rnn.layers
            ? rows_of(shape, static_cast<const T*>(places.y), shape.rnn.hidden)
            : std::vector<T>(layer.kept(), layer.kept() + shape.rows() * shape.rnn.hidden);
    add_weight_gradients(layer, input, output);
    input = std::move(output);
  }
}

template <class T, class Function>
void run(const LstmShape& shape, const LstmPlaces<T>& places, const Function& function) {
  if constexpr (sizeof(T) == 2) {
    const Widened<T> widened(shape, places);
    function(shape, widened.places());
    widened.store();
  } else {
    function(shape, places);
  }
}

}  // namespace

template <class T>
void lstm_forward(const LstmShape& shape, const LstmPlaces<T>& places) {
  run(shape, places, [](const auto&... of) { forward(of...); });
}
template <class T>
void lstm_backward_data(const LstmShape& shape, const LstmPlaces<T>& places) {
  run(shape, places, [](const auto&... of) { backward_data(of...); });
}
template <class T>
void lstm_backward_weights(const LstmShape& shape, const LstmPlaces<T>& places) {
  run(shape, places, [](const auto&... of) { backward_weights(of...); });
}

#define EMULATED_LSTM(T)                                                    \
  template void lstm_forward(const LstmShape&, const LstmPlaces<T>&);       \
  template void lstm_backward_data(const LstmShape&, const LstmPlaces<T>&); \
  template void lstm_backward_weights(const LstmShape&, const LstmPlaces<T>&);
EMULATED_LSTM(float)
EMULATED_LSTM(double)
EMULATED_LSTM(Float16)
EMULATED_LSTM(BFloat16)
#undef EMULATED_LSTM

}  // namespace ebb::emulated
