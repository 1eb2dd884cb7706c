#include "ebb/ebb.h"
#include "ebb/tests/catch.h"

using namespace ebb;
using namespace ebb::literals;

TEST_CASE("reading a simulated tensor says so, with the line") {
  const Device twin = Device::simulated("cpu", 1_GiB);
  const Tensor a = Tensor::full({2}, 1, DType::f32, twin);
  CHECK_ERROR((a + a).item<float>({0}), SimulatedRead, "simulated.cpp:");
  CHECK_ERROR(a.to_vector<float>(), SimulatedRead, "sim:cpu");
  CHECK_ERROR(a.to(Device::cpu()), SimulatedRead, "no values");
}

TEST_CASE("devices are named as programs name them") {
  CHECK(Device::parse("cpu") == Device::cpu());
  CHECK(Device::parse("sim:cpu:512MiB").runtime().capacity_bytes() == 512_MiB);
  CHECK(Device::parse("sim:cpu:2G").runtime().capacity_bytes() == 2_GiB);
  CHECK_ERROR(Device::parse("sim:cpu"), Error, "sim:PROFILE:SIZE");
  CHECK_ERROR(Device::parse("sim:cpu:12parsecs"), Error, "sim:PROFILE:SIZE");
  CHECK_ERROR(Device::parse("sim:abacus:1GiB"), Error, "abacus");
  CHECK_ERROR(Device::parse("gpu"), Error, "unknown device");
}
