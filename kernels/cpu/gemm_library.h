#pragma once
#include "ebb/kernels/cpu/gemm.h"

namespace ebb::cpu {

// One product, not tiny, by a library, on the calling thread alone (gemm_eigen.cpp,
// gemm_onednn.cpp). False, with c as it was, where the library refuses: its buffers did not fit.
[[nodiscard]] bool library_multiply(std::int64_t m, std::int64_t n, std::int64_t k, Factor<float> a,
                                    Factor<float> b, float* c, std::int64_t c_stride,
                                    bool accumulate) noexcept;
[[nodiscard]] bool library_multiply(std::int64_t m, std::int64_t n, std::int64_t k,
                                    Factor<double> a, Factor<double> b, double* c,
                                    std::int64_t c_stride, bool accumulate) noexcept;

}  // namespace ebb::cpu
