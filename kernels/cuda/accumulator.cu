#include "ebb/optim/kernels/accumulator.h"

#include "ebb/kernels/cuda/merged.h"

namespace ebb::cuda {
namespace {

struct AddRows {
  static constexpr int kArrays = 2, kWritten = 1;  // sum; g

  const std::int64_t* rows;

  template <class T>
  struct Constants {
    T rows;
  };

  __device__ bool is_open() const { return true; }

  template <class T>
  __device__ Constants<T> constants() const {
    return {static_cast<T>(*rows)};
  }

  template <class T>
  __device__ static void update(const Constants<T>& c, T (&x)[kArrays]) {
    x[0] += c.rows * x[1];
  }
};

}  // namespace

Status accumulate_merged(std::span<const Launch> launches) {
  return run_merged(launches, [](const KernelContext& context) {
    return AddRows{context.inputs[2].as<const std::int64_t>()};
  });
}

Status accumulate(const KernelContext& context) { return run_one(accumulate_merged, context); }

}  // namespace ebb::cuda
