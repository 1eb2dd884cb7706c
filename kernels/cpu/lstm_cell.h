#pragma once
#include <cstdint>

// The pointwise part of one step for one row of the batch: `units` hidden units, whose four gates
// lie `hidden` elements apart.
namespace ebb::cpu {

template <class T>
struct CellForward {
  T* gates;            // in: inputs by W. Out, if keep: the activated gates
  const T* recurrent;  // h R, the four gates recurrent_stride apart; null: zeros
  const T* bias;
  const T* cell_before;  // null: zeros
  T* cell;
  T* hidden;
  T* sequence;          // a second place for the hidden state, or null
  std::int64_t stride;  // between gates, in gates and bias
  std::int64_t recurrent_stride;
  bool keep;
};

template <class T>
void cell_forward(const CellForward<T>& row, std::int64_t units) noexcept;

template <class T>
struct CellBackward {
  const T* gates;  // activated
  const T* cell;
  const T* cell_before;  // null: zeros
  const T* d_hidden;     // from the step after, or null
  const T* d_output;     // from above, or null
  T* d_cell;             // in: from the step after. Out: for the step before
  T* d_gates;            // before activation
  std::int64_t stride;   // between gates, in gates and d_gates
};

template <class T>
void cell_backward(const CellBackward<T>& row, std::int64_t units) noexcept;

}  // namespace ebb::cpu
