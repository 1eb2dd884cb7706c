#include "ebb/kernels/cpu/gemm.h"

#ifdef EBB_HAVE_ONEDNN
#include <dlfcn.h>

#include "ebb/kernels/cpu/onednn.h"
#include "ebb/kernels/cpu/transpose.h"

namespace ebb::cpu {
namespace {

// Looked up by name: only the library knows which OpenMP runtime it was built on, if any.
struct OpenMp {
  int (*threads)() = nullptr;
  void (*set_threads)(int) = nullptr;

  OpenMp() noexcept
      : threads(reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"))),
        set_threads(reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"))) {
    if (threads == nullptr || set_threads == nullptr) {
      threads = [] { return 1; };
      set_threads = [](int) {};
    }
  }
};

const OpenMp& open_mp() noexcept {
  static const OpenMp runtime;
  return runtime;
}

bool sgemm(std::int64_t m, std::int64_t n, std::int64_t k, const Factor<float>& a,
           const Factor<float>& b, float* c, std::int64_t c_stride, bool accumulate) noexcept {
  // The stride of a single row does not matter here, but oneDNN checks it.
  const auto stride = [](const Factor<float>& f, std::int64_t rows, std::int64_t columns) {
    return std::max(f.stride, f.transposed ? rows : columns);
  };
  return dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0f, a.data,
                    stride(a, m, k), b.data, stride(b, k, n), accumulate ? 1.0f : 0.0f, c,
                    std::max(c_stride, n)) == dnnl_success;
}

// A block of a factor whose rows are no power of two apart.
struct PackedBlock {
  static constexpr std::int64_t kRows = 128, kColumns = 240, kStride = kColumns + 8;
  alignas(64) float data[kRows * kStride];

  Factor<float> pack(const float* from, std::int64_t stride, std::int64_t rows,
                     std::int64_t columns, bool transposed) noexcept {
    for (std::int64_t row = 0; row < rows; ++row)
      std::copy_n(from + row * stride, columns, data + row * kStride);
    return {data, kStride, transposed};
  }
  // The transpose of a block [columns, rows].
  Factor<float> transpose(const float* from, std::int64_t stride, std::int64_t rows,
                          std::int64_t columns) noexcept {
    copy_block<4>(reinterpret_cast<const std::byte*>(from), reinterpret_cast<std::byte*>(data),
                  columns, rows, {4 * stride, 4 * kStride});
    return {data, kStride, false};
  }
};

// oneDNN's kernels for AVX2 read some factors where they lie, row by row. Rows that are a multiple
// of 2 KiB apart share few lines of the cache, and it takes up to three times as long. `reuse`: how
// often a packed number would be used.
bool is_slow(const Factor<float>& factor, bool by_rows, std::int64_t reuse) noexcept {
  return by_rows && !has_avx512_kernels() && factor.stride % 512 == 0 && reuse >= 16;
}

// Its kernels for AVX-512 read b row by row. A transposed one is copied first, slower than tile by
// tile, which counts where few rows of a use it.
bool is_slow_to_transpose(const Factor<float>& b, std::int64_t n, std::int64_t k,
                          std::int64_t reuse) noexcept {
  return b.transposed && has_avx512_kernels() && reuse >= 8 && reuse < 256 && n * k >= 1024;
}

// In a function of its own, since its blocks take 250 KiB of the stack.
[[gnu::noinline]] void multiply_packed(std::int64_t m, std::int64_t n, std::int64_t k,
                                       const Factor<float>& a, bool packs_a, const Factor<float>& b,
                                       bool packs_b, float* c, std::int64_t c_stride,
                                       bool accumulate) noexcept {
  using Packed = PackedBlock;
  Packed block_a, block_b;
  // Parts of equal size.
  const auto part_of = [](std::int64_t count) {
    return round_up(divide_up(count, divide_up(count, Packed::kColumns)), 16);
  };
  const std::int64_t rows = packs_a ? part_of(m) : m, columns = packs_b ? part_of(n) : n;
  for (std::int64_t j = 0; j < n; j += columns)
    for (std::int64_t l = 0; l < k; l += Packed::kRows) {
      const std::int64_t depth = std::min(Packed::kRows, k - l), width = std::min(columns, n - j);
      Factor<float> part_b = b.at(l, j);
      if (packs_b && b.transposed)
        part_b = block_b.transpose(part_b.data, b.stride, depth, width);
      else if (packs_b)
        part_b = block_b.pack(part_b.data, b.stride, depth, width, false);
      for (std::int64_t i = 0; i < m; i += rows) {
        const std::int64_t height = std::min(rows, m - i);
        Factor<float> part_a = a.at(i, l);
        if (packs_a) part_a = block_a.pack(part_a.data, a.stride, depth, height, true);
        multiply(height, width, depth, part_a, part_b, c + i * c_stride + j, c_stride,
                 accumulate || l > 0);
      }
    }
}

}  // namespace

OneThread::OneThread() noexcept : before_(open_mp().threads()) {
  if (before_ != 1) open_mp().set_threads(1);
}
OneThread::~OneThread() {
  if (before_ != 1) open_mp().set_threads(before_);
}

bool library_multiply(std::int64_t m, std::int64_t n, std::int64_t k, Factor<float> a,
                      Factor<float> b, float* c, std::int64_t c_stride, bool accumulate) noexcept {
  const OneThread one_thread;
  const bool packs_a = is_slow(a, a.transposed, n),
             packs_b = is_slow(b, !b.transposed, m) || is_slow_to_transpose(b, n, k, m);
  if (!packs_a && !packs_b) return sgemm(m, n, k, a, b, c, c_stride, accumulate);
  multiply_packed(m, n, k, a, packs_a, b, packs_b, c, c_stride, accumulate);
  return true;
}

}  // namespace ebb::cpu
#endif
