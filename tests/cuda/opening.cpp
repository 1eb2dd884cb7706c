// Without a usable CUDA device, one line says why, and everything else goes on.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/session.h"
#include "ebb/kernels/cuda/loader/part.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"
#include "ebb/tests/line.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

// Why CUDA device `number` cannot be opened; "" if it can. Asks on a new thread, which has not
// chosen a device yet, as in a process that has just begun.
std::string why_not(int number) {
  std::string why;
  std::thread([&] {
    try {
      static_cast<void>(detail::open_cuda(number));
    } catch (const Error& error) {
      why = error.what();
    }
  }).join();
  return why;
}

bool is_one_line(const std::string& text) {
  return !text.empty() && text.find('\n') == std::string::npos;
}

// Text that a function writes to the standard error.
template <class Function>
std::string standard_error(const Function& function) {
  std::FILE* const file = std::tmpfile();
  const int before = ::dup(STDERR_FILENO);
  ::dup2(::fileno(file), STDERR_FILENO);
  function();
  ::dup2(before, STDERR_FILENO);
  ::close(before);
  std::string text(static_cast<std::size_t>(std::ftell(file)), ' ');
  std::rewind(file);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

constinit const OpDef cpu_only_op{
    .name = "cpu_only",
    .infer = [](Inference& i) { i.output(i.inputs[0].dtype, i.inputs[0].shape); },
    .cpu = {[](const KernelContext& c) -> Status {
      std::memcpy(c.outputs[0].data, c.inputs[0].data,
                  sizeof(float) * static_cast<std::size_t>(c.inputs[0].elements()));
      return {};
    }}};

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
  CHECK(detail::count_cuda() == -1);
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
  machine->lose_device(46);  // cudaErrorDevicesUnavailable
  CHECK_THAT(why_not(0), Catch::Contains("in use by another process"));
  machine->lose_device(2);  // cudaErrorMemoryAllocation
  CHECK_THAT(why_not(0), Catch::Contains("no memory left for a context"));
  machine->lose_device(0);
  CHECK(why_not(0) == "");
}

TEST_CASE("a value of the environment that means nothing is told with those that do") {
  for (const auto& [name, value, said] :
       {std::tuple{"EBB_CUDA_LSTM", "composd",
                   "EBB_CUDA_LSTM is 'composd'; there is: cudnn, composed"},
        std::tuple{"EBB_CUDA_CHECK", "off", "EBB_CUDA_CHECK is 'off'; there is: 0, 1"},
        std::tuple{"EBB_CUDA_MEMORY", "Plain",
                   "EBB_CUDA_MEMORY is 'Plain'; there is: virtual, plain, block"}}) {
    const Variable variable(name, value);
    CHECK_THAT(why_not(0), Catch::Contains(said));
    CHECK(is_one_line(why_not(0)));
  }
  for (const char* name : {"EBB_CUDA_LSTM", "EBB_CUDA_CHECK", "EBB_CUDA_MEMORY"}) {
    const Variable variable(name, "");
    CHECK(why_not(0) == "");
  }
}

TEST_CASE("products without cuBLASLt are right, warned of once, and the library's when it starts") {
  const Machine machine;
  const Device device = own_cuda();
  const Tensor a = Tensor::full({40, 40}, 2, DType::f32, device);
  const auto calls_of = [&](DType dtype) {
    return machine.count(&emulated::Statistics::library_calls, [&] {
      const Tensor x = cast(a, dtype);
      CHECK(cast(matmul(x, x), DType::f32).item<float>({3, 4}) == 160);
    });
  };
  machine->set_capacity(machine.statistics().bytes);
  const std::string said = standard_error([&] {
    CHECK(calls_of(DType::f32) == 0);
    CHECK(calls_of(DType::f16) == 0);
  });
  CHECK_THAT(said, Catch::Contains("a hundred times slower: cuBLASLt does not start"));
  CHECK(std::count(said.begin(), said.end(), '\n') == 1);
  machine->set_capacity(std::size_t{4} << 30);
  CHECK(calls_of(DType::f64) == 1);
}

// In a process of its own: the version that starts first serves all devices.
TEST_CASE("where one version of cuBLASLt does not start, the next one is tried", "[.][versions]") {
  const Machine machine;
  const Tensor a = Tensor::full({40, 40}, 2, DType::f32, own_cuda());
  machine->inject(emulated::Fault::create_cublaslt, 0, 1);
  CHECK(machine.count(&emulated::Statistics::library_calls, [&] {
    CHECK(matmul(a, a).item<float>({3, 4}) == 160);
  }) == 1);
}

TEST_CASE("a device of this machine is simulated by its number too") {
  CHECK(Device::parse("sim:cuda:0:1GiB").runtime().profile().name ==
        Device::cuda().runtime().profile().name);
  CHECK_THROWS_WITH(Device::parse("sim:cuda:7:1GiB"), Catch::Contains("there is cuda:0 alone"));
  CHECK_THROWS_WITH(Device::parse("sim:cudax:1GiB"), Catch::Contains("no profile named 'cudax'"));
  CHECK_ERROR_HERE(Device::parse("sim:cudax:1GiB"), Error, "no profile named");
}

TEST_CASE("an operator without a kernel for CUDA says so at the user's line, in both modes") {
  const CallSite site = CallSite::here();
  const auto apply = [&](const Tensor& x) { return apply_one(cpu_only_op, {x}, {}, site); };
  const std::string said =
      "[cpu_only] has no kernel for device cuda; on cpu, where Tensor::to "
      "moves its inputs, it has one (" +
      std::string(site.file) + ":" + std::to_string(site.line) + ")";
  const Tensor x = Tensor::full({2}, 1);
  CHECK(apply(x).to_vector<float>() == std::vector<float>{1, 1});
  CHECK_ERROR(apply(x.to(Device::cuda())), Error, said);
  CHECK(apply(x.to(Device::cuda()).to(Device::cpu())).to(Device::cuda()).to_vector<float>() ==
        std::vector<float>{1, 1});
  Graph graph;
  const Tensor fed = graph.placeholder("x", DType::f32, {-1});
  const Tensor y = apply(fed);
  Session session(graph, {.device = Device::cuda()});
  CHECK_ERROR(session.run(y, {{fed, x}}), Error, said);
}
