// A GPU that refuses or breaks: one clear error, nothing lost on the host, nothing leaked.
#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"

using namespace ebb;
using namespace ebb::tests;
using emulated::Fault;

namespace {

using Floats = std::vector<float>;

std::size_t in_use(const Device& device) { return memory::stats(device).allocated.current; }

}  // namespace

TEST_CASE("a launch that is refused is the operator's error, and the next one runs") {
  const Machine machine;
  const Device device = own_cuda();
  const Tensor x = Tensor::full({4}, 2, DType::f32, device);
  const std::size_t before = in_use(device);
  machine->inject(Fault::launch, 0, 701);  // cudaErrorLaunchOutOfResources
  CHECK_THROWS_WITH(x * 3, Catch::Contains("[multiply]") && Catch::Contains("failures.cpp"));
  CHECK(in_use(device) == before);
  CHECK((x * 3).to_vector<float>() == Floats{6, 6, 6, 6});
}

TEST_CASE("a kernel that breaks the device loses it: every answer says so, and the CPU serves on") {
  const Machine machine;
  {
    const Device device = own_cuda();
    const Tensor x = Tensor::full({4}, 2, DType::f32, device);
    machine->inject(Fault::execute, 0, 700);  // cudaErrorIllegalAddress
    const Tensor y = x * 3;
    CHECK_THROWS_WITH(y.to_vector<float>(), Catch::Contains("cudaErrorIllegalAddress"));
    CHECK_THROWS_WITH(x + 1, Catch::Contains("cudaErrorIllegalAddress"));
    CHECK((Tensor::full({1}, 1) + 1).item<float>() == 2);
  }
  machine->lose_device(0, 0);
  const Device again = own_cuda();
  CHECK((Tensor::full({1}, 1, DType::f32, again) + 1).item<float>() == 2);
}

TEST_CASE("a full GPU refuses with the figures, and serves when there is room again") {
  const Machine machine;
  machine->set_capacity(0, std::size_t{64} << 20);
  {
    const Device device = own_cuda();
    const Tensor held = Tensor::full({6 << 20}, 1, DType::f32, device);  // 24 MiB
    CHECK_THROWS_AS(Tensor::full({16 << 20}, 1, DType::f32, device), OutOfMemory);
    CHECK_THROWS_WITH(Tensor::full({16 << 20}, 1, DType::f32, device),
                      Catch::Contains("64.0 MiB") && Catch::Contains("failures.cpp"));
    CHECK(in_use(device) == held.bytes());
    CHECK(
        (Tensor::full({1 << 20}, 1, DType::f32, device) + held.item<float>({0})).item<float>({7}) ==
        2);
  }
  machine->set_capacity(0, std::size_t{4} << 30);
}

TEST_CASE("a run that a product fails in says which, and the session trains on") {
  const Machine machine;
  const Device device = own_cuda();
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {64, 64});
  const Tensor y = matmul(x, x);
  Session session(graph, {.device = device});
  const Tensor eye = Tensor::full({64, 64}, 1, DType::f32, device);
  machine->inject(Fault::cublaslt, 0, 13);  // CUBLAS_STATUS_EXECUTION_FAILED
  CHECK_THROWS_WITH(session.run(y, {{x, eye}}), Catch::Contains("[matmul]"));
  CHECK(session.run(y, {{x, eye}}).item<float>({3, 3}) == 64);
}

TEST_CASE("a program that cannot be instantiated runs launch by launch") {
  const Machine machine;
  const Device device = own_cuda();
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {2});
  Session session(graph, {.device = device});
  const Tensor y = x * 2 + 1;
  machine->inject(Fault::instantiate_graph, 0, 2);
  const std::uint64_t graphs = machine.statistics().graph_launches;
  for (int i = 0; i < 3; ++i)
    CHECK(session.run(y, {{x, Tensor::full({2}, i)}}).item<float>({1}) == 2 * i + 1);
  CHECK(machine.statistics().graph_launches == graphs);
}
