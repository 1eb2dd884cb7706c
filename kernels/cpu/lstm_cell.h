#pragma once
#include <cstdint>

// The pointwise part of one step for one row of the batch: `units` hidden units, whose four gates
// lie `hidden` elements apart.
namespace ebb::cpu {

template <class T>
struct CellForward {
  const T* product;  // x W + h R, the four gates product_stride apart
  const T* bias;
  const T* cell_before;  // null: zeros
  T* gates;              // the activated gates, or null
  T* cell;
  T* hidden;
  T* sequence;          // a second place for the hidden state, or null
  std::int64_t stride;  // between gates, in gates and bias
  std::int64_t product_stride;
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
