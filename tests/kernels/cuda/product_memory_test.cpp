#include "ebb/kernels/cuda/plans/product_memory.h"

#include "ebb/allocator/cuda_profile.h"
#include "ebb/tests/catch.h"

namespace ebb::cuda {
namespace {

TEST_CASE(
    "a product's workspace is a quarter of its matrices, and 8 MiB for large ones on Hopper") {
  const auto limit = [](int capability, DType dtype, std::int64_t m, std::int64_t n,
                        std::int64_t k) {
    const memory::Profile profile = memory::cuda_profile(capability, 132);
    return product_limit(dense_product(dtype, m, n, k), &profile) >> 10;
  };
  for (const int capability : {80, 90}) {
    CHECK(limit(capability, DType::bf16, 256, 256, 256) == 64);
    CHECK(limit(capability, DType::f32, 64, 64, 64) == 0);
    CHECK(limit(capability, DType::bf16, 1024, 1024, 512) == 1024);
  }
  CHECK(limit(80, DType::bf16, 1024, 2048, 1024) == 2560);
  CHECK(limit(90, DType::bf16, 1024, 2048, 1024) == 8192);
  CHECK(limit(80, DType::bf16, 4096, 4096, 4096) == 8192);
  CHECK(limit(90, DType::bf16, 4096, 4096, 4096) == 24576);
  CHECK(limit(90, DType::f32, 8192, 8192, 8192) == 32768);
}

}  // namespace
}  // namespace ebb::cuda
