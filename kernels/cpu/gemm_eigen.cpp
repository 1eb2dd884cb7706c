// The only file that includes Eigen: alignment of its types follows the instruction set.
#include "ebb/kernels/cpu/gemm.h"

#include <new>

#if defined(__GNUC__) && !defined(__clang__)
// GCC 12 takes the undefined operand of its own AVX-512 intrinsics for a mistake (its bug 105593).
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#define EIGEN_DONT_PARALLELIZE
#define EIGEN_MPL2_ONLY
#include <Eigen/Core>

namespace ebb::cpu {
namespace {

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class T>
using ConstView = Eigen::Map<const Matrix<T>, Eigen::Unaligned, Eigen::OuterStride<>>;
template <class T>
using View = Eigen::Map<Matrix<T>, Eigen::Unaligned, Eigen::OuterStride<>>;

template <class T>
ConstView<T> stored(Factor<T> f, std::int64_t rows, std::int64_t columns) {
  return ConstView<T>(f.data, f.transposed ? columns : rows, f.transposed ? rows : columns,
                      Eigen::OuterStride<>(f.stride));
}

// Throws std::bad_alloc where there is no memory for its packing buffers, before it writes a sum.
template <class T>
void eigen_multiply(std::int64_t m, std::int64_t n, std::int64_t k, Factor<T> a, Factor<T> b, T* c,
                    std::int64_t c_stride, bool accumulate) {
  View<T> result(c, m, n, Eigen::OuterStride<>(c_stride));
  const auto store = [&](const auto& product) {
    if (accumulate) {
      result.noalias() += product;
    } else {
      result.noalias() = product;
    }
  };
  const ConstView<T> x = stored(a, m, k), y = stored(b, k, n);
  if (a.transposed && b.transposed) return store(x.transpose() * y.transpose());
  if (a.transposed) return store(x.transpose() * y);
  if (b.transposed) return store(x * y.transpose());
  store(x * y);
}

template <class... Arguments>
bool has_multiplied(const Arguments&... arguments) noexcept try {
  eigen_multiply(arguments...);
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

}  // namespace

#ifndef EBB_HAVE_ONEDNN
bool library_multiply(std::int64_t m, std::int64_t n, std::int64_t k, Factor<float> a,
                      Factor<float> b, float* c, std::int64_t c_stride, bool accumulate) noexcept {
  return has_multiplied(m, n, k, a, b, c, c_stride, accumulate);
}
#endif

bool library_multiply(std::int64_t m, std::int64_t n, std::int64_t k, Factor<double> a,
                      Factor<double> b, double* c, std::int64_t c_stride,
                      bool accumulate) noexcept {
  return has_multiplied(m, n, k, a, b, c, c_stride, accumulate);
}

}  // namespace ebb::cpu
