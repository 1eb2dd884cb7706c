#include "ebb/kernels/cpu/recurrent_cell.h"

#include "ebb/kernels/cpu/elementary.h"
#include "ebb/kernels/cpu/philox_words.h"
#include "ebb/kernels/cpu/recurrent_layout.h"

namespace ebb::cpu {
namespace {

// Loads and stores whole blocks, or the first `count` elements of one.
template <class T>
struct Whole {
  Block<T> get(const T* from) const noexcept { return load(from); }
  void put(T* to, const Block<T>& block) const noexcept { store(to, block); }
};
template <class T>
struct Part {
  std::int64_t count;
  Block<T> get(const T* from) const noexcept { return load_tail(from, count); }
  void put(T* to, const Block<T>& block) const noexcept { store_tail(to, block, count); }
};

template <class T, class Access>
inline void lstm_forward(const CellForward<T>& row, std::int64_t j, const Access& access) noexcept {
  const auto preactivation = [&](std::int64_t gate) -> Block<T> {
    return access.get(row.product + gate * row.product_stride + j) +
           access.get(row.bias + gate * row.stride + j);
  };
  const Block<T> i = sigmoid(preactivation(0)), f = sigmoid(preactivation(1));
  const Block<T> g = tanh(preactivation(2)), o = sigmoid(preactivation(3));
  Block<T> c = i * g;
  if (row.cell_before != nullptr) c += f * access.get(row.cell_before + j);
  const Block<T> h = o * tanh(c);
  access.put(row.cell + j, c);
  access.put(row.hidden + j, h);
  if (row.sequence != nullptr) access.put(row.sequence + j, h);
  if (row.gates == nullptr) return;
  access.put(row.gates + j, i);
  access.put(row.gates + row.stride + j, f);
  access.put(row.gates + 2 * row.stride + j, g);
  access.put(row.gates + 3 * row.stride + j, o);
}

// h = n + z (h_before - n).
template <class T, class Access>
inline void gru_forward(const CellForward<T>& row, std::int64_t j, const Access& access) noexcept {
  const auto by_input = [&](std::int64_t gate) -> Block<T> {
    return access.get(row.product + gate * row.product_stride + j) +
           access.get(row.bias + gate * row.stride + j);
  };
  const auto by_state = [&](std::int64_t gate) -> Block<T> {
    if (row.recurrent == nullptr) return Block<T>(0);
    return access.get(row.recurrent + gate * row.product_stride + j);
  };
  const Block<T> r = sigmoid(by_input(0) + by_state(0)), z = sigmoid(by_input(1) + by_state(1));
  const Block<T> q = by_state(2) + access.get(row.bias + 3 * row.stride + j);
  const Block<T> n = tanh(by_input(2) + r * q);
  Block<T> before = Block<T>(0);
  if (row.hidden_before != nullptr) before = access.get(row.hidden_before + j);
  const Block<T> h = n + z * (before - n);
  access.put(row.hidden + j, h);
  if (row.sequence != nullptr) access.put(row.sequence + j, h);
  if (row.gates == nullptr) return;
  access.put(row.gates + j, r);
  access.put(row.gates + row.stride + j, z);
  access.put(row.gates + 2 * row.stride + j, q);
  access.put(row.gates + 3 * row.stride + j, n);
}

template <class T, class Access>
inline void lstm_backward(const CellBackward<T>& row, std::int64_t j,
                          const Access& access) noexcept {
  const Block<T> i = access.get(row.gates + j), f = access.get(row.gates + row.stride + j);
  const Block<T> g = access.get(row.gates + 2 * row.stride + j),
                 o = access.get(row.gates + 3 * row.stride + j);
  const Block<T> tanh_c = tanh(access.get(row.cell + j));
  Block<T> dh = Block<T>(0);
  if (row.d_hidden != nullptr) dh = access.get(row.d_hidden + j);
  if (row.d_output != nullptr) dh += access.get(row.d_output + j);
  const Block<T> dc = access.get(row.d_cell + j) + dh * o * (1 - tanh_c * tanh_c);
  Block<T> df = Block<T>(0);
  if (row.cell_before != nullptr) df = dc * access.get(row.cell_before + j) * (f * (1 - f));
  access.put(row.d_cell + j, dc * f);
  access.put(row.d_gates + j, dc * g * (i * (1 - i)));
  access.put(row.d_gates + row.stride + j, df);
  access.put(row.d_gates + 2 * row.stride + j, dc * i * (1 - g * g));
  access.put(row.d_gates + 3 * row.stride + j, dh * tanh_c * (o * (1 - o)));
}

template <class T, class Access>
inline void gru_backward(const CellBackward<T>& row, std::int64_t j,
                         const Access& access) noexcept {
  const Block<T> r = access.get(row.gates + j), z = access.get(row.gates + row.stride + j);
  const Block<T> q = access.get(row.gates + 2 * row.stride + j),
                 n = access.get(row.gates + 3 * row.stride + j);
  Block<T> dh = Block<T>(0);
  if (row.d_hidden != nullptr) dh = access.get(row.d_hidden + j);
  if (row.d_output != nullptr) dh += access.get(row.d_output + j);
  Block<T> before = Block<T>(0);
  if (row.hidden_before != nullptr) before = access.get(row.hidden_before + j);
  const Block<T> dn = dh * (1 - z) * (1 - n * n);
  access.put(row.d_kept + j, dh * z);
  access.put(row.d_gates + j, dn * q * (r * (1 - r)));
  access.put(row.d_gates + row.stride + j, dh * (before - n) * (z * (1 - z)));
  access.put(row.d_gates + 2 * row.stride + j, dn * r);
  access.put(row.d_gates + 3 * row.stride + j, dn);
}

// Calls body(j, access) for all blocks of a row.
template <class T, class Body>
inline void for_blocks(std::int64_t units, const Body& body) noexcept {
  std::int64_t j = 0;
  for (; j + kBlock<T> <= units; j += kBlock<T>) body(j, Whole<T>{});
  if (j < units) body(j, Part<T>{units - j});
}

}  // namespace

template <class T>
void cell_forward(RecurrentCell cell, const CellForward<T>& row, std::int64_t units) noexcept {
  if (cell == RecurrentCell::lstm) {
    for_blocks<T>(units, [&](std::int64_t j, const auto& access) { lstm_forward(row, j, access); });
  } else {
    for_blocks<T>(units, [&](std::int64_t j, const auto& access) { gru_forward(row, j, access); });
  }
}

template <class T>
void cell_backward(RecurrentCell cell, const CellBackward<T>& row, std::int64_t units) noexcept {
  if (cell == RecurrentCell::lstm) {
    for_blocks<T>(units,
                  [&](std::int64_t j, const auto& access) { lstm_backward(row, j, access); });
  } else {
    for_blocks<T>(units, [&](std::int64_t j, const auto& access) { gru_backward(row, j, access); });
  }
}

template <class T>
void drop_steps(const RecurrentSizes& size, const T* from, T* to, std::int64_t t,
                std::int64_t steps, double probability, std::uint64_t key, std::uint64_t counter,
                std::int64_t layer) {
  const std::int64_t width = size.hidden;
  for_pieces(
      size.batch * steps, rows_per_piece(width), [=, &size](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          const std::int64_t element =
              layer * kRecurrentLayerElements +
              (row % size.batch * size.time + t + row / size.batch) * width;
          drop(from + row * width, to + row * width, width, probability, key, counter, element);
        }
      });
}

template void cell_forward(RecurrentCell, const CellForward<float>&, std::int64_t) noexcept;
template void cell_forward(RecurrentCell, const CellForward<double>&, std::int64_t) noexcept;
template void cell_backward(RecurrentCell, const CellBackward<float>&, std::int64_t) noexcept;
template void cell_backward(RecurrentCell, const CellBackward<double>&, std::int64_t) noexcept;
template void drop_steps(const RecurrentSizes&, const float*, float*, std::int64_t, std::int64_t,
                         double, std::uint64_t, std::uint64_t, std::int64_t);
template void drop_steps(const RecurrentSizes&, const double*, double*, std::int64_t, std::int64_t,
                         double, std::uint64_t, std::uint64_t, std::int64_t);

}  // namespace ebb::cpu
