// What is said where there is no CUDA device to be had, and what goes on all the same.
#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/kernels/cuda/host/load.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

std::string why_not(int number) {
  try {
    static_cast<void>(detail::open_cuda(number));
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

bool is_one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == std::string::npos;
}

}  // namespace

TEST_CASE("a machine without a driver, or with an old one, is told so in one line") {
  const Machine machine;
  machine->set_driver(0);
  CHECK_THAT(why_not(0), Catch::Contains("this machine has no CUDA driver"));
  CHECK(is_one_line(why_not(0)));
  CHECK(cuda::toolkit().driver_version == 0);
  CHECK(detail::count_cuda() == 0);
  machine->set_driver(11040);
  CHECK_THAT(why_not(0), Catch::Contains("11.4") && Catch::Contains("needs one for CUDA"));
  CHECK((Tensor::full({2}, 1) + 1).to_vector<float>() == std::vector<float>{2, 2});
  machine->set_driver(13000);
  CHECK(why_not(0) == "");
}

TEST_CASE("a device that is not there is told with those that are") {
  CHECK_THAT(why_not(7), Catch::Contains("cuda:7") && Catch::Contains("cuda:0"));
  CHECK_THAT(why_not(-1), Catch::Contains("cuda:-1"));
  CHECK_THROWS_WITH(Device::parse("cuda:x"), Catch::Contains("unknown device 'cuda:x'"));
  CHECK_THROWS_WITH(Device::parse("cuda:99999999999"), Catch::Contains("unknown device"));
  CHECK(Device::parse("cuda").name() == "cuda");
}

TEST_CASE("a device that is full, or taken away, is told so, and can be opened when it is back") {
  const Machine machine;
  machine->lose_device(0, 46);  // cudaErrorDevicesUnavailable
  CHECK_THAT(why_not(0), Catch::Contains("in use by another process"));
  machine->lose_device(0, 2);  // cudaErrorMemoryAllocation
  CHECK_THAT(why_not(0), Catch::Contains("no memory left for a context"));
  machine->lose_device(0, 0);
  CHECK(why_not(0) == "");
}
