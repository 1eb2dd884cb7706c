#include "ebb/kernels/cpu/recurrent_cell.h"

#include "ebb/kernels/cpu/elementary.h"

namespace ebb::cpu {
namespace {

// A whole block at unit j of every array, or the first `count` elements of one.
template <class T, bool kWhole>
struct At {
  std::int64_t j, count;

  Block<T> get(const T* from) const noexcept {
    return kWhole ? load(from + j) : load_tail(from + j, count);
  }
  Block<T> get_or_zero(const T* from) const noexcept { return from == nullptr ? T(0) : get(from); }
  void put(T* to, const Block<T>& block) const noexcept {
    kWhole ? store(to + j, block) : store_tail(to + j, block, count);
  }
  template <class... Blocks>
  void put_gates(T* to, std::int64_t stride, const Blocks&... gates) const noexcept {
    std::int64_t gate = 0;
    (put(to + gate++ * stride, gates), ...);
  }
};

template <class T, bool kWhole>
inline void lstm_forward(const CellForward<T>& row, const At<T, kWhole>& at) noexcept {
  const auto preactivation = [&](std::int64_t gate) -> Block<T> {
    return at.get(row.product + gate * row.product_stride) + at.get(row.bias + gate * row.stride);
  };
  const Block<T> i = sigmoid(preactivation(0)), f = sigmoid(preactivation(1));
  const Block<T> g = tanh(preactivation(2)), o = sigmoid(preactivation(3));
  Block<T> c = i * g;
  if (row.cell_before != nullptr) c += f * at.get(row.cell_before);
  const Block<T> h = o * tanh(c);
  at.put(row.cell, c);
  at.put(row.hidden, h);
  if (row.sequence != nullptr) at.put(row.sequence, h);
  if (row.gates != nullptr) at.put_gates(row.gates, row.stride, i, f, g, o);
}

// h = n + z (h_before - n).
template <class T, bool kWhole>
inline void gru_forward(const CellForward<T>& row, const At<T, kWhole>& at) noexcept {
  const auto by_input = [&](std::int64_t gate) -> Block<T> {
    return at.get(row.product + gate * row.product_stride) + at.get(row.bias + gate * row.stride);
  };
  const auto by_state = [&](std::int64_t gate) -> Block<T> {
    if (row.recurrent == nullptr) return T(0);
    return at.get(row.recurrent + gate * row.product_stride);
  };
  const Block<T> r = sigmoid(by_input(0) + by_state(0)), z = sigmoid(by_input(1) + by_state(1));
  const Block<T> q = by_state(2) + at.get(row.bias + 3 * row.stride);
  const Block<T> n = tanh(by_input(2) + r * q);
  const Block<T> h = n + z * (at.get_or_zero(row.hidden_before) - n);
  at.put(row.hidden, h);
  if (row.sequence != nullptr) at.put(row.sequence, h);
  if (row.gates != nullptr) at.put_gates(row.gates, row.stride, r, z, q, n);
}

template <class T, bool kWhole>
inline void lstm_backward(const CellBackward<T>& row, const At<T, kWhole>& at) noexcept {
  const Block<T> i = at.get(row.gates), f = at.get(row.gates + row.stride);
  const Block<T> g = at.get(row.gates + 2 * row.stride), o = at.get(row.gates + 3 * row.stride);
  const Block<T> tanh_c = tanh(at.get(row.cell));
  Block<T> dh = at.get_or_zero(row.d_hidden);
  if (row.d_output != nullptr) dh += at.get(row.d_output);
  const Block<T> dc = at.get(row.d_cell) + dh * o * (1 - tanh_c * tanh_c);
  Block<T> df = T(0);
  if (row.cell_before != nullptr) df = dc * at.get(row.cell_before) * (f * (1 - f));
  at.put(row.d_cell, dc * f);
  at.put_gates(row.d_gates, row.stride, dc * g * (i * (1 - i)), df, dc * i * (1 - g * g),
               dh * tanh_c * (o * (1 - o)));
}

template <class T, bool kWhole>
inline void gru_backward(const CellBackward<T>& row, const At<T, kWhole>& at) noexcept {
  const Block<T> r = at.get(row.gates), z = at.get(row.gates + row.stride);
  const Block<T> q = at.get(row.gates + 2 * row.stride), n = at.get(row.gates + 3 * row.stride);
  Block<T> dh = at.get_or_zero(row.d_hidden);
  if (row.d_output != nullptr) dh += at.get(row.d_output);
  const Block<T> before = at.get_or_zero(row.hidden_before);
  const Block<T> dn = dh * (1 - z) * (1 - n * n);
  at.put(row.d_kept, dh * z);
  at.put_gates(row.d_gates, row.stride, dn * q * (r * (1 - r)), dh * (before - n) * (z * (1 - z)),
               dn * r, dn);
}

// Calls body(At) for all blocks of a row.
template <class T, class Body>
inline void for_blocks(std::int64_t units, const Body& body) noexcept {
  std::int64_t j = 0;
  for (; j + kBlock<T> <= units; j += kBlock<T>) body(At<T, true>{j, kBlock<T>});
  if (j < units) body(At<T, false>{j, units - j});
}

}  // namespace

template <class T>
void cell_forward(RecurrentCell cell, const CellForward<T>& row, std::int64_t units) noexcept {
  if (cell == RecurrentCell::lstm)
    for_blocks<T>(units, [&](const auto& at) { lstm_forward(row, at); });
  else
    for_blocks<T>(units, [&](const auto& at) { gru_forward(row, at); });
}

template <class T>
void cell_backward(RecurrentCell cell, const CellBackward<T>& row, std::int64_t units) noexcept {
  if (cell == RecurrentCell::lstm)
    for_blocks<T>(units, [&](const auto& at) { lstm_backward(row, at); });
  else
    for_blocks<T>(units, [&](const auto& at) { gru_backward(row, at); });
}

template void cell_forward(RecurrentCell, const CellForward<float>&, std::int64_t) noexcept;
template void cell_forward(RecurrentCell, const CellForward<double>&, std::int64_t) noexcept;
template void cell_backward(RecurrentCell, const CellBackward<float>&, std::int64_t) noexcept;
template void cell_backward(RecurrentCell, const CellBackward<double>&, std::int64_t) noexcept;

}  // namespace ebb::cpu
