#include "ebb/kernels/cpu/gemm.h"

#ifdef EBB_HAVE_ONEDNN
#include <dlfcn.h>
#include <oneapi/dnnl/dnnl.h>

namespace ebb::cpu {
namespace {

// oneDNN asks its OpenMP runtime how many threads a product may take; ebb cuts products itself, so
// the answer is one while a product runs, and the caller's own setting afterwards. Looked up by
// name: only the library knows which runtime it was built on, if any.
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

class OneThread {
 public:
  OneThread() noexcept : before_(runtime().threads()) {
    if (before_ != 1) runtime().set_threads(1);
  }
  ~OneThread() {
    if (before_ != 1) runtime().set_threads(before_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  static const OpenMp& runtime() noexcept {
    static const OpenMp open_mp;
    return open_mp;
  }
  int before_;
};

}  // namespace

bool library_multiply(std::int64_t m, std::int64_t n, std::int64_t k, Factor<float> a,
                      Factor<float> b, float* c, std::int64_t c_stride, bool accumulate) noexcept {
  const OneThread one_thread;
  // The stride of a single row does not matter here, but oneDNN checks it.
  const auto stride = [](const Factor<float>& f, std::int64_t rows, std::int64_t columns) {
    return std::max(f.stride, f.transposed ? rows : columns);
  };
  return dnnl_sgemm(a.transposed ? 'T' : 'N', b.transposed ? 'T' : 'N', m, n, k, 1.0f, a.data,
                    stride(a, m, k), b.data, stride(b, k, n), accumulate ? 1.0f : 0.0f, c,
                    std::max(c_stride, n)) == dnnl_success;
}

}  // namespace ebb::cpu
#endif
