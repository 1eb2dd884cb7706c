#include "ebb/kernels/cuda/recurrent_cell.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ebb/core/kernels/functors/activations.h"
#include "ebb/core/kernels/functors/elementary.h"
#include "ebb/core/kernels/philox.h"
#include "ebb/kernels/cuda/launch.h"

namespace ebb::cuda {
namespace {

// Neighbouring threads take neighbouring hidden units; each row of threads takes a row of the
// batch. So an index needs no division.
constexpr int kUnits = kWarp, kRows = 4;

template <class Body>
__device__ void for_cells(std::int64_t batch, std::int64_t hidden, const Body& body) {
  const std::int64_t row_step = std::int64_t{gridDim.y} * kRows;
  const std::int64_t unit_step = std::int64_t{gridDim.x} * kUnits;
  for (std::int64_t b = std::int64_t{blockIdx.y} * kRows + threadIdx.y; b < batch; b += row_step)
    for (std::int64_t j = std::int64_t{blockIdx.x} * kUnits + threadIdx.x; j < hidden;
         j += unit_step)
      body(b, j);
}

template <class T>
__device__ Accumulate<T> value(const StepRows<const T>& rows, std::int64_t b, std::int64_t j) {
  return rows.data == nullptr ? 0 : static_cast<Accumulate<T>>(rows.data[b * rows.stride + j]);
}

// The value in `rows`; if they are null, in `otherwise` [batch, hidden].
template <class T>
__device__ Accumulate<T> value(const StepRows<const Accumulate<T>>& rows, const T* otherwise,
                               std::int64_t b, std::int64_t j, std::int64_t hidden) {
  if (rows.data != nullptr) return value(rows, b, j);
  return value(StepRows<const T>{otherwise, hidden}, b, j);
}

// Stores the state of one unit of one row after a step; at the row's last step also as its last
// state.
template <class T>
__device__ void put_state(const CellForward<T>& cell, const RowLength& length, std::int64_t b,
                          std::int64_t j, std::int64_t hidden, Accumulate<T> h, Accumulate<T> c) {
  if (cell.cell.data != nullptr) cell.cell.data[b * cell.cell.stride + j] = c;
  cell.hidden.data[b * cell.hidden.stride + j] = static_cast<T>(h);
  if (cell.ends.t + 1 != length.steps) return;
  if (cell.last_hidden != nullptr) cell.last_hidden[b * hidden + j] = static_cast<T>(h);
  if (cell.last_cell != nullptr) cell.last_cell[b * hidden + j] = static_cast<T>(c);
}

// After the end of a row, stores zeros; a row without steps passes its initial state on as the
// last. Returns whether the row is over.
template <class T>
__device__ bool put_nothing(const CellForward<T>& cell, const RowLength& length, std::int64_t b,
                            std::int64_t j, std::int64_t hidden) {
  using A = Accumulate<T>;
  if (cell.ends.t < length.steps) return false;
  if (cell.ends.t == 0) {
    const A h = value(StepRows<const T>{cell.first_hidden, hidden}, b, j);
    const A c = value(StepRows<const A>{}, cell.first_cell, b, j, hidden);
    if (cell.last_hidden != nullptr) cell.last_hidden[b * hidden + j] = static_cast<T>(h);
    if (cell.last_cell != nullptr) cell.last_cell[b * hidden + j] = static_cast<T>(c);
  }
  if (cell.cell.data != nullptr) cell.cell.data[b * cell.cell.stride + j] = 0;
  cell.hidden.data[b * cell.hidden.stride + j] = T(0);
  T* const gates = cell.gates.data + b * cell.gates.stride + j;
  for (std::int64_t gate = 0; cell.keep && gate < 4; ++gate) gates[gate * hidden] = T(0);
  return true;
}

template <class T>
__global__ void __launch_bounds__(kUnits* kRows)
    lstm_forward(const CellForward<T> cell, std::int64_t batch, std::int64_t hidden) {
  for_cells(batch, hidden, [&](std::int64_t b, std::int64_t j) {
    using A = Accumulate<T>;
    const RowLength length = row_length(cell.ends.lengths, b, cell.ends.time);
    if (put_nothing(cell, length, b, j, hidden)) return;
    T* const gates = cell.gates.data + b * cell.gates.stride + j;
    const auto preactivation = [&](std::int64_t gate) {
      return static_cast<A>(gates[gate * hidden]) + static_cast<A>(cell.bias[gate * hidden + j]);
    };
    constexpr functors::Sigmoid sigmoid;
    constexpr functors::Tanh tanh;
    const A i = sigmoid(preactivation(0)), f = sigmoid(preactivation(1));
    const A g = tanh(preactivation(2)), o = sigmoid(preactivation(3));
    A c = f * value(cell.cell_before, cell.first_cell, b, j, hidden) + i * g;
    A h = o * tanh(c);
    if (!length.is_valid) c = h = std::numeric_limits<A>::quiet_NaN();
    put_state(cell, length, b, j, hidden, h, c);
    if (!cell.keep) return;
    gates[0] = static_cast<T>(i);
    gates[hidden] = static_cast<T>(f);
    gates[2 * hidden] = static_cast<T>(g);
    gates[3 * hidden] = static_cast<T>(o);
  });
}

template <class T>
__global__ void __launch_bounds__(kUnits* kRows)
    gru_forward(const CellForward<T> cell, std::int64_t batch, std::int64_t hidden) {
  for_cells(batch, hidden, [&](std::int64_t b, std::int64_t j) {
    using A = Accumulate<T>;
    const RowLength length = row_length(cell.ends.lengths, b, cell.ends.time);
    if (put_nothing(cell, length, b, j, hidden)) return;
    T* const gates = cell.gates.data + b * cell.gates.stride + j;
    const StepRows<const T> product{cell.recurrent, 3 * hidden};
    const auto by_input = [&](std::int64_t gate) {
      return static_cast<A>(gates[gate * hidden]) + static_cast<A>(cell.bias[gate * hidden + j]);
    };
    const auto by_state = [&](std::int64_t gate) { return value(product, b, j + gate * hidden); };
    constexpr functors::Sigmoid sigmoid;
    const A r = sigmoid(by_input(0) + by_state(0)), z = sigmoid(by_input(1) + by_state(1));
    const A q = by_state(2) + static_cast<A>(cell.bias[3 * hidden + j]);
    A n = functors::Tanh{}(by_input(2) + r * q);
    if (!length.is_valid) n = std::numeric_limits<A>::quiet_NaN();
    put_state(cell, length, b, j, hidden, n + z * (value(cell.hidden_before, b, j) - n), A(0));
    if (!cell.keep) return;
    gates[0] = static_cast<T>(r);
    gates[hidden] = static_cast<T>(z);
    gates[2 * hidden] = static_cast<T>(q);
    gates[3 * hidden] = static_cast<T>(n);
  });
}

// After the end of a row, stores zeros as the gates' gradients. Returns whether the row is over.
template <class T>
__device__ bool put_no_gradient(const CellBackward<T>& cell, const RowLength& length,
                                std::int64_t b, std::int64_t j, std::int64_t hidden) {
  if (cell.ends.t < length.steps) return false;
  T* const d_gates = cell.d_gates.data + b * cell.d_gates.stride + j;
  for (std::int64_t gate = 0; gate < 4; ++gate) d_gates[gate * hidden] = T(0);
  return true;
}

template <class T>
__global__ void __launch_bounds__(kUnits* kRows)
    lstm_backward(const CellBackward<T> cell, std::int64_t batch, std::int64_t hidden) {
  for_cells(batch, hidden, [&](std::int64_t b, std::int64_t j) {
    using A = Accumulate<T>;
    T* const d_gates = cell.d_gates.data + b * cell.d_gates.stride + j;
    const RowLength length = row_length(cell.ends.lengths, b, cell.ends.time);
    const bool is_last = cell.ends.t + 1 == length.steps;
    const A d_last_cell = value(StepRows<const A>{}, cell.d_last_cell, b, j, hidden);
    if (put_no_gradient(cell, length, b, j, hidden)) {
      if (cell.d_first != nullptr) cell.d_first[b * hidden + j] = static_cast<T>(d_last_cell);
      return;
    }
    const A i = value(cell.gates, b, j), f = value(cell.gates, b, j + hidden);
    const A g = value(cell.gates, b, j + 2 * hidden), o = value(cell.gates, b, j + 3 * hidden);
    const A tanh_c = functors::Tanh{}(value(cell.cell, b, j));
    const A d_hidden = is_last ? value(StepRows<const T>{cell.d_last_hidden, hidden}, b, j)
                               : value(cell.d_hidden, b, j);
    const A dh = d_hidden + value(cell.d_output, b, j);
    const A dc = (is_last ? d_last_cell : value(cell.d_carried_after, b, j)) +
                 dh * o * (1 - tanh_c * tanh_c);
    const A before = value(cell.cell_before, cell.first_cell, b, j, hidden);
    if (cell.d_carried.data != nullptr) cell.d_carried.data[b * cell.d_carried.stride + j] = dc * f;
    if (cell.d_first != nullptr) cell.d_first[b * hidden + j] = static_cast<T>(dc * f);
    d_gates[0] = static_cast<T>(dc * g * (i * (1 - i)));
    d_gates[hidden] = static_cast<T>(dc * before * (f * (1 - f)));
    d_gates[2 * hidden] = static_cast<T>(dc * i * (1 - g * g));
    d_gates[3 * hidden] = static_cast<T>(dh * tanh_c * (o * (1 - o)));
  });
}

template <class T>
__global__ void __launch_bounds__(kUnits* kRows)
    gru_backward(const CellBackward<T> cell, std::int64_t batch, std::int64_t hidden) {
  for_cells(batch, hidden, [&](std::int64_t b, std::int64_t j) {
    using A = Accumulate<T>;
    T* const d_gates = cell.d_gates.data + b * cell.d_gates.stride + j;
    const RowLength length = row_length(cell.ends.lengths, b, cell.ends.time);
    if (put_no_gradient(cell, length, b, j, hidden)) {
      if (cell.d_first != nullptr)
        cell.d_first[b * hidden + j] = T(0);  // gradient_of_unused_state() has the rest
      return;
    }
    const A r = value(cell.gates, b, j), z = value(cell.gates, b, j + hidden);
    const A q = value(cell.gates, b, j + 2 * hidden), n = value(cell.gates, b, j + 3 * hidden);
    const A d_hidden = cell.ends.t + 1 == length.steps
                           ? value(StepRows<const T>{cell.d_last_hidden, hidden}, b, j)
                           : value(cell.d_hidden, b, j) + value(cell.d_carried_after, b, j);
    const A dh = d_hidden + value(cell.d_output, b, j);
    const A dn = dh * (1 - z) * (1 - n * n);
    const A before = value(cell.hidden_before, b, j);
    if (cell.d_carried.data != nullptr) cell.d_carried.data[b * cell.d_carried.stride + j] = dh * z;
    if (cell.d_first != nullptr) cell.d_first[b * hidden + j] = static_cast<T>(dh * z);
    d_gates[0] = static_cast<T>(dn * q * (r * (1 - r)));
    d_gates[hidden] = static_cast<T>(dh * (before - n) * (z * (1 - z)));
    d_gates[2 * hidden] = static_cast<T>(dn * r);
    d_gates[3 * hidden] = static_cast<T>(dn);
  });
}

template <class T>
__global__ void __launch_bounds__(kUnits* kRows)
    put_initial(const std::int64_t* lengths, const T* d_last, T* d_first, std::int64_t batch,
                std::int64_t hidden) {
  for_cells(batch, hidden, [&](std::int64_t b, std::int64_t j) {
    if (lengths[b] != 0) return;
    d_first[b * hidden + j] = d_last == nullptr ? T(0) : d_last[b * hidden + j];
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

template <class Parameters, class Kernel>
Status launch_cells(cudaStream_t stream, const RecurrentSizes& size, Kernel kernel,
                    const Parameters& cell) noexcept {
  if (size.state() == 0) return {};
  return launch(stream, kernel, blocks_of(size), dim3(kUnits, kRows), cell, size.batch,
                size.hidden);
}

}  // namespace

template <class T>
Status cell_forward(cudaStream_t stream, const RecurrentSizes& size,
                    const CellForward<T>& cell) noexcept {
  return launch_cells(stream, size, size.has_cell ? lstm_forward<T> : gru_forward<T>, cell);
}

template <class T>
Status cell_backward(cudaStream_t stream, const RecurrentSizes& size,
                     const CellBackward<T>& cell) noexcept {
  return launch_cells(stream, size, size.has_cell ? lstm_backward<T> : gru_backward<T>, cell);
}

template <class T>
Status gradient_of_unused_state(cudaStream_t stream, const RecurrentSizes& size,
                                const std::int64_t* lengths, const T* d_last_hidden,
                                T* d_first_hidden) noexcept {
  if (size.state() == 0) return {};
  return launch(stream, put_initial<T>, blocks_of(size), dim3(kUnits, kRows), lengths,
                d_last_hidden, d_first_hidden, size.batch, size.hidden);
}

template <class T>
Status drop(cudaStream_t stream, const RecurrentSizes& size, const T* from, T* to,
            double probability, const std::int64_t* draw, std::int64_t layer,
            bool time_major) noexcept {
  const std::int64_t count = size.steps();
  if (count == 0) return {};
  // The least word >> 8 with unit_interval(word) >= probability.
  const auto least = static_cast<std::uint32_t>(std::ceil(probability * 0x1p24));
  return launch(stream, drop_groups<T>, blocks_for((count + 3) / 4), kThreads, from, to, count,
                size.batch, size.time, size.hidden, time_major, least,
                static_cast<Accumulate<T>>(1 - probability), draw, layer * kRecurrentLayerElements);
}

#define EBB_RECURRENT_CELL(T)                                                           \
  template Status cell_forward(cudaStream_t, const RecurrentSizes&,                     \
                               const CellForward<T>&) noexcept;                         \
  template Status cell_backward(cudaStream_t, const RecurrentSizes&,                    \
                                const CellBackward<T>&) noexcept;                       \
  template Status gradient_of_unused_state(cudaStream_t, const RecurrentSizes&,         \
                                           const std::int64_t*, const T*, T*) noexcept; \
  template Status drop(cudaStream_t, const RecurrentSizes&, const T*, T*, double,       \
                       const std::int64_t*, std::int64_t, bool) noexcept;
EBB_RECURRENT_CELL(float)
EBB_RECURRENT_CELL(double)
EBB_RECURRENT_CELL(Float16)
EBB_RECURRENT_CELL(BFloat16)
#undef EBB_RECURRENT_CELL

}  // namespace ebb::cuda
