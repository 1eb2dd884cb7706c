#include "ebb/kernels/cuda/loader/part.h"

#include "ebb/tests/catch.h"

namespace ebb::cuda {
namespace {

TEST_CASE("the CUDA part answers on every machine, and the same when asked again") {
  const Toolkit first = toolkit();
  const Toolkit again = toolkit();
  CHECK(first.compiled_version == again.compiled_version);
  CHECK(first.driver_version == again.driver_version);
  CHECK(first.device_count == again.device_count);
  // Without a toolkit no driver can be asked; without a driver there are no devices.
  if (first.compiled_version == 0) CHECK(first.driver_version == 0);
  if (first.driver_version == 0) CHECK(first.device_count == 0);
}

TEST_CASE("the CUDA part describes what it found in one line") {
  CHECK(describe({}) == "no CUDA part");
  CHECK(describe({.compiled_version = 13000}) == "CUDA 13.0, no driver here");
  CHECK(describe({.compiled_version = 13000, .lacks_cublas_lt = true}) ==
        "CUDA 13.0 without cuBLASLt (slow products), no driver here");
  CHECK(describe({.compiled_version = 12040, .driver_version = 12080, .device_count = 2}) ==
        "CUDA 12.4, driver for 12.8, 2 devices");
}

}  // namespace
}  // namespace ebb::cuda
