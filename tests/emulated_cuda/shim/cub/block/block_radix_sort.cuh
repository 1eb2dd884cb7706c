// CUB's radix sort of a block: the first thread sorts.
#pragma once
#include <algorithm>

#include <cuda_runtime.h>

namespace cub {

template <class K, int kThreads, int kEach, class V>
class BlockRadixSort {
 public:
  struct Pair {
    K key;
    V value;
  };
  struct TempStorage {
    Pair pairs[kThreads * kEach];
  };
  explicit BlockRadixSort(TempStorage& storage) : pairs_(storage.pairs) {}

  void Sort(K (&keys)[kEach], V (&values)[kEach], int begin_bit, int end_bit) {
    constexpr int kAll = kThreads * kEach;
    const int own = static_cast<int>(threadIdx.x) * kEach;
    // In the place of the next thread, which may still read there if a barrier is missing.
    for (int j = 0; j < kEach; ++j) pairs_[(own + kEach + j) % kAll] = {keys[j], values[j]};
    __syncthreads();
    const K mask =
        static_cast<K>(~K{0} >> (8 * sizeof(K) - static_cast<unsigned>(end_bit - begin_bit)));
    if (threadIdx.x == 0) {
      std::rotate(pairs_, pairs_ + kEach, pairs_ + kAll);
      std::stable_sort(pairs_, pairs_ + kAll, [&](const Pair& a, const Pair& b) {
        return (a.key >> begin_bit & mask) < (b.key >> begin_bit & mask);
      });
    }
    __syncthreads();
    for (int j = 0; j < kEach; ++j) {
      keys[j] = pairs_[own + j].key;
      values[j] = pairs_[own + j].value;
    }
  }

 private:
  Pair* pairs_;
};

}  // namespace cub
