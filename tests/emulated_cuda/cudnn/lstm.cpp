#include "ebb/tests/emulated_cuda/cudnn/lstm.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "ebb/core/base/half.h"
#include "ebb/tests/emulated_cuda/cublaslt/gemm.h"
#include "ebb/tests/emulated_cuda/memory/address_space.h"

namespace ebb::emulated {
namespace {

template <class T>
T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}

// A layer's sizes, and pointers to its weights, gates, cells, inputs and outputs.
template <class T>
struct Layer {
  Layer(const LstmShape& shape, const LstmPlaces<T>& places, std::int64_t layer)
      : shape(shape),
        places(places),
        where(shape.rnn, layer),
        hidden(shape.rnn.hidden),
        width(where.width),
        batch(shape.batch),
        steps(shape.rows() * hidden),
        first_state(layer * shape.state()),
        gates(places.reserve + layer * 5 * steps),
        cells(gates + 4 * steps),
        x(layer == 0 ? places.x : below(layer - 1)),
        y(layer + 1 == shape.rnn.layers ? places.y : below(layer)) {}
  // Hidden state and cell of the previous step.
  T hidden_before(std::int64_t step, std::int64_t at) const {
    if (step > 0) return y[(step - 1) * shape.state() + at];
    return places.hx ? places.hx[first_state + at] : T{0};
  }
  T cell_before(std::int64_t step, std::int64_t at) const {
    if (step > 0) return cells[(step - 1) * shape.state() + at];
    return places.cx ? places.cx[first_state + at] : T{0};
  }
  // Hidden states of a layer that is not the last.
  T* below(std::int64_t layer) const {
    return places.reserve + (5 * shape.rnn.layers + layer) * steps;
  }

  const LstmShape& shape;
  const LstmPlaces<T>& places;
  const WeightPlaces where;
  const std::int64_t hidden, width, batch, steps, first_state;
  T *const gates, *const cells;  // [time, batch, 4 hidden], [time, batch, hidden]
  const T* const x;
  T* const y;
};

// rows [n, k] times matrix [k, m], row by row.
template <class T>
std::vector<T> product(const T* rows, std::int64_t n, std::int64_t k, MatrixView<const T> matrix,
                       std::int64_t m) {
  std::vector<T> out(static_cast<std::size_t>(n * m));
  multiply<T>(m, n, k, {matrix.data, matrix.column_step, matrix.row_step}, {rows, 1, k},
              out.data());
  return out;
}

template <class T>
void forward(const Layer<T>& layer) {
  const LstmShape& shape = layer.shape;
  const LstmPlaces<T>& places = layer.places;
  const WeightPlaces& where = layer.where;
  const std::int64_t hidden = layer.hidden, width = layer.width, batch = layer.batch;
  T *const gates = layer.gates, *const cells = layer.cells;
  const T* const w = places.weights + where.input_matrix;
  const T* const r = places.weights + where.hidden_matrix;
  const auto from_input = product<T>(layer.x, shape.rows(), width, {w, 1, width}, 4 * hidden);
  std::vector<T> before(static_cast<std::size_t>(shape.state()));
  for (std::int64_t step = 0; step < shape.steps; ++step) {
    for (std::int64_t at = 0; at < shape.state(); ++at)
      before[static_cast<std::size_t>(at)] = layer.hidden_before(step, at);
    const auto from_hidden = product<T>(before.data(), batch, hidden, {r, 1, hidden}, 4 * hidden);
    for (std::int64_t i = 0; i < batch; ++i)
      for (std::int64_t unit = 0; unit < hidden; ++unit) {
        const std::int64_t row = step * batch + i;
        T gate[4];
        for (std::int64_t g = 0; g < 4; ++g) {
          const std::int64_t column = g * hidden + unit;
          const T sum = from_input[static_cast<std::size_t>(row * 4 * hidden + column)] +
                        from_hidden[static_cast<std::size_t>(i * 4 * hidden + column)] +
                        places.weights[where.input_bias + column] +
                        places.weights[where.hidden_bias + column];
          gate[g] = g == 2 ? std::tanh(sum) : sigmoid(sum);
          gates[row * 4 * hidden + column] = gate[g];
        }
        const T cell = gate[1] * layer.cell_before(step, i * hidden + unit) + gate[0] * gate[2];
        cells[row * hidden + unit] = cell;
        layer.y[row * hidden + unit] = gate[3] * std::tanh(cell);
      }
  }
  const std::int64_t last = (shape.steps - 1) * shape.state();
  if (places.hy) std::copy_n(layer.y + last, shape.state(), places.hy + layer.first_state);
  if (places.cy) std::copy_n(cells + last, shape.state(), places.cy + layer.first_state);
}

// Overwrites the gates with their gradients. Returns that of the input.
template <class T>
std::vector<T> backward_data(const Layer<T>& layer, const T* dy) {
  const LstmShape& shape = layer.shape;
  const LstmPlaces<T>& places = layer.places;
  const WeightPlaces& where = layer.where;
  const std::int64_t hidden = layer.hidden, width = layer.width, batch = layer.batch;
  T *const gates = layer.gates, *const cells = layer.cells;
  const T* const w = places.weights + where.input_matrix;
  const T* const r = places.weights + where.hidden_matrix;
  std::vector<T> dh(static_cast<std::size_t>(shape.state())), dc(dh.size());
  const std::int64_t from = layer.first_state, to = from + shape.state();
  if (places.dhy) dh.assign(places.dhy + from, places.dhy + to);
  if (places.dcy) dc.assign(places.dcy + from, places.dcy + to);
  for (std::int64_t step = shape.steps - 1; step >= 0; --step) {
    for (std::int64_t i = 0; i < batch; ++i)
      for (std::int64_t unit = 0; unit < hidden; ++unit) {
        const std::int64_t row = step * batch + i;
        const auto at = static_cast<std::size_t>(i * hidden + unit);
        T* const gate = gates + row * 4 * hidden + unit;
        const T in = gate[0], forget = gate[hidden], fresh = gate[2 * hidden],
                out = gate[3 * hidden];
        const T turned = std::tanh(cells[row * hidden + unit]);
        const T d_hidden = dh[at] + dy[row * hidden + unit];
        const T d_cell = dc[at] + d_hidden * out * (1 - turned * turned);
        gate[0] = d_cell * fresh * in * (1 - in);
        gate[hidden] = d_cell * layer.cell_before(step, i * hidden + unit) * forget * (1 - forget);
        gate[2 * hidden] = d_cell * in * (1 - fresh * fresh);
        gate[3 * hidden] = d_hidden * turned * out * (1 - out);
        dc[at] = d_cell * forget;
      }
    dh = product<T>(gates + step * batch * 4 * hidden, batch, 4 * hidden, {r, hidden, 1}, hidden);
  }
  if (places.dhx) std::copy(dh.begin(), dh.end(), places.dhx + from);
  if (places.dcx) std::copy(dc.begin(), dc.end(), places.dcx + from);
  return product<T>(gates, shape.rows(), 4 * hidden, {w, width, 1}, width);
}

// Adds to the weights' gradients.
template <class T>
void backward_weights(const Layer<T>& layer) {
  const LstmShape& shape = layer.shape;
  const LstmPlaces<T>& places = layer.places;
  const WeightPlaces& where = layer.where;
  const std::int64_t hidden = layer.hidden;
  std::vector<T> before;
  for (std::int64_t step = 0; step < shape.steps; ++step)
    for (std::int64_t at = 0; at < shape.state(); ++at)
      before.push_back(layer.hidden_before(step, at));
  // Adds, for each weight, the sum over rows of its gate's gradient times its input.
  const auto add = [&](const T* factor, std::int64_t columns, std::int64_t place) {
    std::vector<T> sums(static_cast<std::size_t>(4 * hidden * columns));
    multiply<T>(columns, 4 * hidden, shape.rows(), {factor, 1, columns},
                {layer.gates, 4 * hidden, 1}, sums.data());
    T* to = places.dweights + place;
    for (const T sum : sums) *to++ += sum;
  };
  const std::vector<T> ones(static_cast<std::size_t>(shape.rows()), T{1});
  add(layer.x, layer.width, where.input_matrix);
  add(before.data(), hidden, where.hidden_matrix);
  add(ones.data(), 1, where.input_bias);
  add(ones.data(), 1, where.hidden_bias);
}

// Runs function(shape, places) on copies of the operands, those of 16 bits widened to float, and
// writes back the results, rounded.
template <class T, class Function>
void run_on_copies(const LstmShape& shape, LstmPlaces<void> places, const Function& function) {
  using Wide = Sum<T>;
  const std::int64_t in = shape.rows() * shape.rnn.in, out = shape.rows() * shape.rnn.hidden;
  const std::int64_t state = shape.states(), weights = weight_elements(shape.rnn);
  const std::int64_t read[] = {in, state, state, weights, out, state, state};
  const std::int64_t written[] = {out,   state, state,   in,
                                  state, state, weights, shape.reserve_elements()};
  const auto resident = [](const void* at) { return static_cast<T*>(address_space().alias(at)); };
  std::vector<std::vector<Wide>> memory;
  const auto copy = [&](const void* at, std::int64_t count) -> Wide* {
    if (!at) return nullptr;
    return memory.emplace_back(resident(at), resident(at) + count).data();
  };
  LstmPlaces<Wide> wide;
  for (std::size_t i = 0; i < std::size(read); ++i)
    *wide.read()[i] = copy(*places.read()[i], read[i]);
  for (std::size_t i = 0; i < std::size(written); ++i)
    *wide.written()[i] = copy(*places.written()[i], written[i]);
  function(shape, wide);
  for (std::size_t i = 0; i < std::size(written); ++i)
    if (const Wide* const from = *wide.written()[i])
      std::transform(from, from + written[i], resident(*places.written()[i]),
                     [](Wide x) { return static_cast<T>(x); });
}

template <class Function>
void run(const LstmShape& shape, const LstmPlaces<void>& places, const Function& function) {
  switch (shape.rnn.type) {
    case CUDNN_DATA_DOUBLE:
      return run_on_copies<double>(shape, places, function);
    case CUDNN_DATA_HALF:
      return run_on_copies<Float16>(shape, places, function);
    case CUDNN_DATA_BFLOAT16:
      return run_on_copies<BFloat16>(shape, places, function);
    default:
      return run_on_copies<float>(shape, places, function);
  }
}

}  // namespace

void lstm_forward(const LstmShape& shape, const LstmPlaces<void>& places) {
  run(shape, places, [](const LstmShape& of, const auto& at) {
    for (std::int64_t layer = 0; layer < of.rnn.layers; ++layer) forward(Layer(of, at, layer));
  });
}
void lstm_backward_data(const LstmShape& shape, const LstmPlaces<void>& places) {
  run(shape, places, [](const LstmShape& of, const auto& at) {
    auto dx = backward_data(Layer(of, at, of.rnn.layers - 1), at.dy);
    for (std::int64_t layer = of.rnn.layers - 1; layer-- > 0;)
      dx = backward_data(Layer(of, at, layer), std::as_const(dx).data());
    std::copy(dx.begin(), dx.end(), at.dx);
  });
}
void lstm_backward_weights(const LstmShape& shape, const LstmPlaces<void>& places) {
  run(shape, places, [](const LstmShape& of, const auto& at) {
    for (std::int64_t layer = 0; layer < of.rnn.layers; ++layer)
      backward_weights(Layer(of, at, layer));
  });
}

}  // namespace ebb::emulated
