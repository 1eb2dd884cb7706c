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
  const auto arrays = [](const KernelContext&) { return std::size_t{AddRows::kArrays}; };
  return run_merged(launches, arrays, [](const MergedGroup& group) {
    const auto inputs = group.front().inputs;
    const DType sum = inputs[0].spec.dtype, gradient = inputs[1].spec.dtype;
    const auto run = [&]<class S, class G>(S, G) {
      return group.run<S, G>(AddRows{inputs[2].as<const std::int64_t>()});
    };
    if (is_half(gradient))
      return sum == DType::f32 ? for_half(gradient, [&](auto g) { return run(float{}, g); })
                               : kNoKernel;
    return for_wide(sum,
                    [&](auto s) { return for_wide(gradient, [&](auto g) { return run(s, g); }); });
  });
}

Status accumulate(const KernelContext& context) { return run_one(accumulate_merged, context); }

}  // namespace ebb::cuda
