// Partial blocks at the end of an array.
#pragma once
#include "ebb/kernels/cpu/vector_block.h"

namespace ebb::cpu {

// Loads and stores count elements, 0 < count <= a block.
template <class T>
inline Block<T> load_some(const T* from, std::int64_t count, T padding = T(1)) noexcept {
  return count >= kBlock<T> ? load(from) : load_tail(from, count, padding);
}
template <class T>
inline void store_some(T* to, const Block<T>& block, std::int64_t count) noexcept {
  if (count >= kBlock<T>) {
    store(to, block);
  } else {
    store_tail(to, block, count);
  }
}

}  // namespace ebb::cpu
