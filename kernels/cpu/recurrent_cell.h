#pragma once
#include <cstdint>

#include "ebb/core/kernels/recurrent.h"

// The pointwise part of one step for one row of the batch: `units` hidden units, whose four gates
// lie `stride` elements apart. A GRU's gates are r, z, q, n (its bias has n before q): q is the
// recurrent part of n, n the input's part.
namespace ebb::cpu {

template <class T>
struct CellForward {
  const T* product;    // LSTM: x W + h R, GRU: x W, the gates product_stride apart
  const T* recurrent;  // GRU: h R likewise; null: zeros
  const T* bias;
  const T* cell_before;    // LSTM; null: zeros
  const T* hidden_before;  // GRU; null: zeros
  T* gates;                // the activated gates, or null
  T* cell;                 // LSTM
  T* hidden;
  T* sequence;          // a second output for the hidden state, or null
  std::int64_t stride;  // between gates, in gates and bias
  std::int64_t product_stride;
};

template <class T>
void cell_forward(RecurrentCell cell, const CellForward<T>& row, std::int64_t units) noexcept;

template <class T>
struct CellBackward {
  const T* gates;          // activated
  const T* cell;           // LSTM
  const T* cell_before;    // LSTM; null: zeros
  const T* hidden_before;  // GRU; null: zeros
  const T* d_hidden;       // from the step after, or null
  const T* d_output;       // from above, or null
  T* d_cell;               // LSTM, in: from the step after. Out: for the step before
  T* d_kept;               // GRU: for the step before, without the part by R; may be d_hidden
  T* d_gates;              // before activation
  std::int64_t stride;     // between gates, in gates and d_gates
};

template <class T>
void cell_backward(RecurrentCell cell, const CellBackward<T>& row, std::int64_t units) noexcept;

}  // namespace ebb::cpu
