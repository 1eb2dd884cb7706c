#include "ebb/kernels/cuda/gemm_own.h"

#include <type_traits>

#include "ebb/core/kernels/functors/activations.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/tile_product.h"

namespace ebb::cuda {
namespace {

template <class T, bool kTransposeA, bool kTransposeB>
struct Gemm {
  using A = Accumulate<T>;
  static constexpr bool kADepthIsRow = !kTransposeA, kBDepthIsRow = kTransposeB;
  static constexpr int kUnroll = 4;

  const T* a_data;
  const T* b_data;
  T* c;
  std::int64_t m, n, k;
  std::int64_t a_stride, b_stride, c_stride;
  std::int64_t batch, a_next, b_next, c_next;
  const T* bias;  // or null
  bool accumulate, relu;

  __device__ std::int64_t begin(std::int64_t) const { return 0; }
  __device__ std::int64_t end(std::int64_t) const { return k; }
  __device__ A a(std::int64_t product, std::int64_t row, std::int64_t at) const {
    const T* const from = a_data + product * a_next;
    return static_cast<A>(from[kTransposeA ? at * a_stride + row : row * a_stride + at]);
  }
  __device__ std::int64_t fixed(std::int64_t at) const { return at; }
  __device__ A b(std::int64_t product, std::int64_t fixed, std::int64_t at) const {
    const T* const from = b_data + product * b_next;
    return static_cast<A>(from[at * b_stride + fixed]);
  }
  __device__ void put(std::int64_t product, std::int64_t row, std::int64_t column, A sum) const {
    T& to = c[product * c_next + row * c_stride + column];
    if (bias != nullptr) sum += static_cast<A>(bias[column]);
    if (accumulate) sum += static_cast<A>(to);
    if (relu) sum = functors::Relu{}(sum);
    to = static_cast<T>(sum);
  }
};

}  // namespace

Status multiply_own(cudaStream_t stream, const ProductShape& shape, Epilogue epilogue,
                    const ProductOperands& operands) noexcept {
  if (shape.m == 0 || shape.n == 0 || shape.batch == 0) return {};
  const bool relu = epilogue == Epilogue::relu || epilogue == Epilogue::bias_relu;
  const bool bias = epilogue == Epilogue::bias || epilogue == Epilogue::bias_relu;
  return for_floating(shape.dtype, [&]<class T>(T) {
    const auto run = [&]<bool kTransposeA, bool kTransposeB>(std::bool_constant<kTransposeA>,
                                                             std::bool_constant<kTransposeB>) {
      return multiply_tiles(stream,
                            Gemm<T, kTransposeA, kTransposeB>{
                                .a_data = static_cast<const T*>(operands.a),
                                .b_data = static_cast<const T*>(operands.b),
                                .c = static_cast<T*>(operands.c),
                                .m = shape.m,
                                .n = shape.n,
                                .k = shape.k,
                                .a_stride = shape.a_stride,
                                .b_stride = shape.b_stride,
                                .c_stride = shape.c_stride,
                                .batch = shape.batch,
                                .a_next = shape.a_next,
                                .b_next = shape.b_next,
                                .c_next = shape.c_next,
                                .bias = bias ? static_cast<const T*>(operands.vector) : nullptr,
                                .accumulate = operands.accumulate,
                                .relu = relu});
    };
    constexpr std::true_type kYes;
    constexpr std::false_type kNo;
    if (shape.transpose_a) return shape.transpose_b ? run(kYes, kYes) : run(kYes, kNo);
    return shape.transpose_b ? run(kNo, kYes) : run(kNo, kNo);
  });
}

}  // namespace ebb::cuda
