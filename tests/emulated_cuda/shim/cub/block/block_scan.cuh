// CUB's scan of a block: each thread adds up the totals of the threads before it.
#pragma once
#include <cuda_runtime.h>

namespace cub {

template <class T, int kThreads>
class BlockScan {
 public:
  struct TempStorage {
    T totals[kThreads];
  };
  explicit BlockScan(TempStorage& storage) : totals_(storage.totals) {}

  template <int kEach, class Then>
  void ExclusiveScan(T (&in)[kEach], T (&out)[kEach], T initial, Then then, T& of_block) {
    T& own = totals_[threadIdx.x];
    own = in[0];
    for (int j = 1; j < kEach; ++j) own = then(own, in[j]);
    __syncthreads();
    T before = initial;
    for (unsigned thread = 0; thread < threadIdx.x; ++thread)
      before = then(before, totals_[thread]);
    of_block = totals_[0];
    for (int thread = 1; thread < kThreads; ++thread) of_block = then(of_block, totals_[thread]);
    for (int j = 0; j < kEach; ++j) {
      const T x = in[j];
      out[j] = before;
      before = then(before, x);
    }
  }

 private:
  T* totals_;
};

}  // namespace cub
