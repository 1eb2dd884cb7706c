// When work is done.
#include <set>

#include "ebb/tests/emulated_cuda/self/fixture.h"

namespace ebb::tests {
namespace {

__global__ void add(float* to, const float* from, float value) { *to = *from + value; }

float doubled(const DeviceArray<float>& y, cudaStream_t stream) { return y.read(stream)[0]; }

// y = x + 1 in one stream, z = y + 1 in another.
std::set<float> results(bool waits) {
  std::set<float> seen;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const TestStream one, two;
    const DeviceArray<float> x(std::vector<float>{1}), y(std::vector<float>{10}), z(1);
    cudaEvent_t event = nullptr;
    REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
    control().set_seed(seed);
    REQUIRE(launch(one, 1, 1, add, y.get(), x.get(), 1.0f) == cudaSuccess);
    REQUIRE(cudaEventRecord(event, one) == cudaSuccess);
    if (waits) REQUIRE(cudaStreamWaitEvent(two, event) == cudaSuccess);
    REQUIRE(launch(two, 1, 1, add, z.get(), y.get(), 1.0f) == cudaSuccess);
    seen.insert(doubled(z, two));
    REQUIRE(cudaEventDestroy(event) == cudaSuccess);
  }
  return seen;
}

}  // namespace

TEST_CASE("Work is done when somebody waits for it, and not before") {
  const FreshDevice fresh;
  const TestStream stream;
  const DeviceArray<float> x(std::vector<float>{1}), y(1);
  float* pinned = nullptr;
  REQUIRE(cudaHostAlloc(reinterpret_cast<void**>(&pinned), sizeof(float), 0) == cudaSuccess);
  *pinned = 5;
  REQUIRE(cudaMemcpyAsync(x.get(), pinned, 4, cudaMemcpyHostToDevice, stream) == cudaSuccess);
  *pinned = 7;  // read late, as a device may
  REQUIRE(launch(stream, 1, 1, add, y.get(), x.get(), 1.0f) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(pinned, y.get(), 4, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  emulated::Statistics statistics = {};
  control().statistics(&statistics);
  CHECK(statistics.pending == 3);
  CHECK(*pinned == 7);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(*pinned == 8);
  CHECK(cudaFreeHost(pinned) == cudaSuccess);
}

TEST_CASE("What is not pinned is copied when the call is made") {
  const FreshDevice fresh;
  const TestStream stream;
  const DeviceArray<float> x(1);
  float value = 3;
  REQUIRE(cudaMemcpyAsync(x.get(), &value, 4, cudaMemcpyHostToDevice, stream) == cudaSuccess);
  value = 4;
  CHECK(x.read(stream)[0] == 3);
}

TEST_CASE("A wait that is forgotten shows for some seed, and one that is kept for none") {
  const FreshDevice fresh;
  CHECK(results(true) == std::set<float>{3});
  CHECK(results(false) == std::set<float>{3, 11});
  control().set_drops_waits(true);
  CHECK(results(true) == std::set<float>{3, 11});
  control().set_drops_waits(false);
}

TEST_CASE("Who polls gets on") {
  const FreshDevice fresh;
  const TestStream stream;
  const DeviceArray<float> x(std::vector<float>{1}), y(1);
  REQUIRE(launch(stream, 1, 1, add, y.get(), x.get(), 1.0f) == cudaSuccess);
  int asked = 0;
  while (cudaStreamQuery(stream) == cudaErrorNotReady) REQUIRE(++asked < 1000);
  CHECK(cudaStreamQuery(stream) == cudaSuccess);
  CHECK(cudaGetLastError() == cudaSuccess);
}

TEST_CASE("The default stream is refused") {
  const FreshDevice fresh;
  const DeviceArray<float> x(std::vector<float>{1});
  CHECK(launch(nullptr, 1, 1, add, x.get(), x.get(), 1.0f) == cudaErrorInvalidResourceHandle);
  CHECK(complained_of("default stream"));
}

TEST_CASE("A failure that was asked for comes once") {
  const FreshDevice fresh;
  const TestStream stream;
  const DeviceArray<float> x(std::vector<float>{1});
  control().inject(emulated::Fault::launch, 1, cudaErrorLaunchOutOfResources);
  CHECK(launch(stream, 1, 1, add, x.get(), x.get(), 1.0f) == cudaSuccess);
  CHECK(launch(stream, 1, 1, add, x.get(), x.get(), 1.0f) == cudaErrorLaunchOutOfResources);
  CHECK(launch(stream, 1, 1, add, x.get(), x.get(), 1.0f) == cudaSuccess);
  CHECK(x.read(stream)[0] == 3);
  control().inject(emulated::Fault::execute, 0, cudaErrorLaunchFailure);
  CHECK(launch(stream, 1, 1, add, x.get(), x.get(), 1.0f) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorLaunchFailure);
  CHECK(cudaMemset(x.get(), 0, 4) == cudaErrorLaunchFailure);
  control().lose_device(0, 0);
}

TEST_CASE("A captured graph does the same work again, and illegal calls end a capture") {
  const FreshDevice fresh;
  const TestStream stream, other;
  const DeviceArray<float> x(std::vector<float>{1});
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t exec = nullptr;
  cudaEvent_t event = nullptr;
  REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  REQUIRE(launch(stream, 1, 1, add, x.get(), x.get(), 1.0f) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, stream) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(other, event) == cudaSuccess);
  REQUIRE(launch(other, 1, 1, add, x.get(), x.get(), 10.0f) == cudaSuccess);
  REQUIRE(cudaEventRecord(event, other) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(stream, event) == cudaSuccess);
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(x.read(stream)[0] == 1);
  REQUIRE(cudaGraphInstantiate(&exec, graph) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  for (int run = 0; run < 2; ++run) REQUIRE(cudaGraphLaunch(exec, stream) == cudaSuccess);
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);  // the launches have what they need
  CHECK(x.read(stream)[0] == 23);

  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
  CHECK(launch(stream, 1, 1, add, x.get(), x.get(), 1.0f) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, 16) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaEventDestroy(event) == cudaSuccess);
}

}  // namespace ebb::tests
