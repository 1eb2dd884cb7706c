#include "ebb/kernels/cuda/recurrent_cell.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "ebb/core/kernels/functors/activations.h"
#include "ebb/core/kernels/functors/elementary.h"
#include "ebb/core/kernels/philox.h"
#include "ebb/kernels/cuda/launch.h"

namespace ebb::cuda {
namespace {

// Neighbouring threads take neighbouring hidden units; each row of threads takes a row of the
// batch. So an index needs no division.
constexpr int kUnits = kWarp, kRows = 4;

// A hidden unit of a row of the batch.
struct Unit {
  std::int64_t row, column, hidden;

  // Its place in [batch, hidden], and a gate's in rows of gates.
  __device__ std::int64_t at() const { return row * hidden + column; }
  template <class T>
  __device__ T& gate(const StepRows<T>& rows, std::int64_t gate) const {
    return rows.data[row * rows.stride + gate * hidden + column];
  }
};

template <class Body>
__device__ void for_units(std::int64_t batch, std::int64_t hidden, const Body& body) {
  const std::int64_t row_step = std::int64_t{gridDim.y} * kRows;
  const std::int64_t unit_step = std::int64_t{gridDim.x} * kUnits;
  for (std::int64_t b = std::int64_t{blockIdx.y} * kRows + threadIdx.y; b < batch; b += row_step)
    for (std::int64_t j = std::int64_t{blockIdx.x} * kUnits + threadIdx.x; j < hidden;
         j += unit_step)
      body(Unit{b, j, hidden});
}

// Values of a unit; 0 if there are none.
template <class T, class A = Accumulate<std::remove_const_t<T>>>
__device__ A value(const StepRows<T>& rows, const Unit& unit, std::int64_t gate = 0) {
  return rows.data == nullptr ? A(0) : static_cast<A>(unit.gate(rows, gate));
}
template <class T>
__device__ Accumulate<T> value(const T* states, const Unit& unit) {
  return states == nullptr ? 0 : static_cast<Accumulate<T>>(states[unit.at()]);
}
template <class T, class Step>
__device__ Accumulate<T> cell_before(const Step& step, const Unit& unit) {
  return step.cell_before.data != nullptr ? value(step.cell_before, unit)
                                          : value(step.first_cell, unit);
}

struct Lstm {
  // Computes the unit's activated gates i, f, g, o, its cell c and its state h.
  template <class T, class A>
  __device__ static void forward(const CellForward<T>& step, const Unit& unit, A (&gates)[4], A& c,
                                 A& h) {
    constexpr functors::Sigmoid sigmoid;
    constexpr functors::Tanh tanh;
    const auto sum = [&](std::int64_t gate) {
      return value(step.gates, unit, gate) +
             static_cast<A>(step.bias[gate * unit.hidden + unit.column]);
    };
    gates[0] = sigmoid(sum(0));
    gates[1] = sigmoid(sum(1));
    gates[2] = tanh(sum(2));
    gates[3] = sigmoid(sum(3));
    c = gates[1] * cell_before<T>(step, unit) + gates[0] * gates[2];
    h = gates[3] * tanh(c);
  }
  // Sets d, the gates' gradients. Returns the gradient of the cell before.
  template <class T, class A>
  __device__ static A backward(const CellBackward<T>& step, const Unit& unit, const A (&gates)[4],
                               A dh, A carried, A (&d)[4]) {
    const auto [i, f, g, o] = gates;
    const A tanh_c = functors::Tanh{}(value(step.cell, unit));
    const A dc = carried + dh * o * (1 - tanh_c * tanh_c);
    d[0] = dc * g * (i * (1 - i));
    d[1] = dc * cell_before<T>(step, unit) * (f * (1 - f));
    d[2] = dc * i * (1 - g * g);
    d[3] = dh * tanh_c * (o * (1 - o));
    return dc * f;
  }
};

struct Gru {
  // Computes the unit's r, z, q, n and its state h.
  template <class T, class A>
  __device__ static void forward(const CellForward<T>& step, const Unit& unit, A (&gates)[4], A&,
                                 A& h) {
    constexpr functors::Sigmoid sigmoid;
    const auto bias = [&](std::int64_t gate) {
      return static_cast<A>(step.bias[gate * unit.hidden + unit.column]);
    };
    const auto by_input = [&](std::int64_t gate) {
      return value(step.gates, unit, gate) + bias(gate);
    };
    const StepRows<const T> product{step.recurrent, 3 * unit.hidden};
    const auto by_state = [&](std::int64_t gate) { return value(product, unit, gate); };
    gates[0] = sigmoid(by_input(0) + by_state(0));
    gates[1] = sigmoid(by_input(1) + by_state(1));
    gates[2] = by_state(2) + bias(3);
    gates[3] = functors::Tanh{}(by_input(2) + gates[0] * gates[2]);
    h = gates[3] + gates[1] * (value(step.hidden_before, unit) - gates[3]);
  }
  // Returns the direct part of the gradient of the state before.
  template <class T, class A>
  __device__ static A backward(const CellBackward<T>& step, const Unit& unit, const A (&gates)[4],
                               A dh, A carried, A (&d)[4]) {
    const auto [r, z, q, n] = gates;
    dh += carried;
    const A dn = dh * (1 - z) * (1 - n * n);
    d[0] = dn * q * (r * (1 - r));
    d[1] = dh * (value(step.hidden_before, unit) - n) * (z * (1 - z));
    d[2] = dn * r;
    d[3] = dn;
    return dh * z;
  }
};

// After the end of a row, stores zeros; a row without steps passes its initial state on as the
// last.
template <class Cell, class T>
__global__ void __launch_bounds__(kUnits* kRows)
    forward_kernel(const CellForward<T> step, std::int64_t batch, std::int64_t hidden) {
  for_units(batch, hidden, [&](const Unit& unit) {
    using A = Accumulate<T>;
    const RowLength length = row_length(step.ends.lengths, unit.row, step.ends.time);
    A gates[4] = {}, c = 0, h = 0;
    if (step.ends.t < length.steps) Cell::forward(step, unit, gates, c, h);
    if (!length.is_valid) gates[3] = c = h = std::numeric_limits<A>::quiet_NaN();
    const bool is_empty = length.steps == 0;
    if (step.ends.t + 1 == (is_empty ? 1 : length.steps)) {
      const A last_h = is_empty ? value(step.first_hidden, unit) : h;
      const A last_c = is_empty ? value(step.first_cell, unit) : c;
      if (step.last_hidden != nullptr) step.last_hidden[unit.at()] = static_cast<T>(last_h);
      if (step.last_cell != nullptr) step.last_cell[unit.at()] = static_cast<T>(last_c);
    }
    if (step.cell.data != nullptr) unit.gate(step.cell, 0) = c;
    unit.gate(step.hidden, 0) = static_cast<T>(h);
    for (int gate = 0; step.keep && gate < 4; ++gate)
      unit.gate(step.gates, gate) = static_cast<T>(gates[gate]);
  });
}

// After the end of a row the gates' gradients are zeros, and the gradient of the last cell is
// carried on; gradient_of_unused_state() carries on the gradient of the last hidden state.
template <class Cell, class T>
__global__ void __launch_bounds__(kUnits* kRows)
    backward_kernel(const CellBackward<T> step, std::int64_t batch, std::int64_t hidden) {
  for_units(batch, hidden, [&](const Unit& unit) {
    using A = Accumulate<T>;
    const RowLength length = row_length(step.ends.lengths, unit.row, step.ends.time);
    const bool is_last = step.ends.t + 1 >= length.steps;
    A d_gates[4] = {};
    A carried = is_last ? value(step.d_last_cell, unit) : value(step.d_carried_after, unit);
    if (step.ends.t < length.steps) {
      A gates[4];
      for (int gate = 0; gate < 4; ++gate) gates[gate] = value(step.gates, unit, gate);
      const A dh = (is_last ? value(step.d_last_hidden, unit) : value(step.d_hidden, unit)) +
                   value(step.d_output, unit);
      carried = Cell::backward(step, unit, gates, dh, carried, d_gates);
    }
    if (step.d_carried.data != nullptr) unit.gate(step.d_carried, 0) = carried;
    if (step.d_first != nullptr) step.d_first[unit.at()] = static_cast<T>(carried);
    for (int gate = 0; gate < 4; ++gate)
      unit.gate(step.d_gates, gate) = static_cast<T>(d_gates[gate]);
  });
}

template <class T>
__global__ void __launch_bounds__(kUnits* kRows)
    put_initial(const std::int64_t* lengths, const T* d_last, T* d_first, std::int64_t batch,
                std::int64_t hidden) {
  for_units(batch, hidden, [&](const Unit& unit) {
    if (lengths[unit.row] != 0) return;
    d_first[unit.at()] = d_last == nullptr ? T(0) : d_last[unit.at()];
  });
}

// Dropout. Four neighbouring elements of [batch, time, hidden] share the four words of a draw.
template <class T>
__global__ void drop_groups(const T* from, T* to, std::int64_t count, std::int64_t batch,
                            std::int64_t time, std::int64_t hidden, bool time_major,
                            std::uint32_t least, Accumulate<T> kept, const std::int64_t* draw,
                            std::int64_t first) {
  const auto key = static_cast<std::uint64_t>(draw[0]),
             counter = static_cast<std::uint64_t>(draw[1]);
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t group = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; 4 * group < count;
       group += step) {
    const Philox::Words words =
        Philox::draw(key, counter, static_cast<std::uint64_t>(first / 4 + group));
    for (int i = 0; i < 4 && 4 * group + i < count; ++i) {
      std::int64_t at = 4 * group + i;
      if (time_major) {
        const std::int64_t row = at / hidden, b = row / time, t = row % time;
        at = (t * batch + b) * hidden + at % hidden;
      }
      const std::uint32_t word = words[static_cast<std::size_t>(i)];
      to[at] =
          word >> 8 >= least ? static_cast<T>(static_cast<Accumulate<T>>(from[at]) / kept) : T(0);
    }
  }
}

dim3 blocks_of(const RecurrentSizes& size) noexcept {
  constexpr std::int64_t kMostWide = 1 << 20, kMostHigh = 1 << 15;
  return {static_cast<unsigned>(std::min(kMostWide, (size.hidden + kUnits - 1) / kUnits)),
          static_cast<unsigned>(std::min(kMostHigh, (size.batch + kRows - 1) / kRows))};
}

// Runs kernel(arguments..., batch, hidden).
template <class T, class... Parameters, class... Arguments>
Status launch_units(const RecurrentCall<T>& of, void (*kernel)(Parameters...),
                    const Arguments&... arguments) noexcept {
  if (of.size.state() == 0) return {};
  return launch(stream_of(of.context), kernel, blocks_of(of.size), dim3(kUnits, kRows),
                arguments..., of.size.batch, of.size.hidden);
}

}  // namespace

template <class T>
Status CellKernels<T>::forward(const Call& of, const CellForward<T>& step) noexcept {
  return launch_units(of, of.size.has_cell ? forward_kernel<Lstm, T> : forward_kernel<Gru, T>,
                      step);
}

template <class T>
Status CellKernels<T>::backward(const Call& of, const CellBackward<T>& step) noexcept {
  return launch_units(of, of.size.has_cell ? backward_kernel<Lstm, T> : backward_kernel<Gru, T>,
                      step);
}

template <class T>
Status CellKernels<T>::gradient_of_unused_state(const Call& of, const T* d_last_hidden,
                                                T* d_first_hidden) noexcept {
  return launch_units(of, put_initial<T>, of.lengths(), d_last_hidden, d_first_hidden);
}

template <class T>
Status CellKernels<T>::drop(const Call& of, const T* from, T* to, std::int64_t layer,
                            bool time_major) noexcept {
  const std::int64_t count = of.size.steps();
  if (count == 0) return {};
  const double probability = of.attributes.dropout;
  // The least word >> 8 with unit_interval(word) >= probability.
  const auto least = static_cast<std::uint32_t>(std::ceil(probability * 0x1p24));
  return launch(stream_of(of.context), drop_groups<T>, blocks_for((count + 3) / 4), kThreads, from,
                to, count, of.size.batch, of.size.time, of.size.hidden, time_major, least,
                static_cast<Accumulate<T>>(1 - probability), of.template draw<std::int64_t>(),
                layer * kRecurrentLayerElements);
}

template struct CellKernels<float>;
template struct CellKernels<double>;
template struct CellKernels<Float16>;
template struct CellKernels<BFloat16>;

}  // namespace ebb::cuda
