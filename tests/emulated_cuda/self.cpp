// Tests of the emulated device itself: it finds mistakes that a GPU may forgive. The suites that
// run on it show that it computes, copies and captures correctly.
#include <cublasLt.h>
#include <cuda.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <set>
#include <string>
#include <vector>

#include "ebb/tests/catch.h"
#include "ebb/tests/emulated_cuda/control.h"
#include "ebb/tests/emulated_cuda/execution/sanitizers.h"
#include "ebb/tests/emulated_cuda/memory/address_space.h"

#if defined(__SANITIZE_THREAD__)
// Counts the races that a test wants. Another one ends the program.
namespace {
bool races_are_wanted = false;
int races = 0;
}  // namespace
extern "C" {
__attribute__((visibility("default"))) const char* __tsan_default_options() { return "exitcode=0"; }
__attribute__((visibility("default"))) void __tsan_on_report(void*) {
  if (!races_are_wanted) ::_exit(66);
  ++races;
}
}
#endif

namespace ebb::tests {
namespace {

const emulated::Control& control() { return *ebb_emulated_control(); }
bool complained_of(const std::string& text) {
  return std::string(control().last_complaint()).find(text) != std::string::npos;
}

// Whether function() ends the process. Tried in a child.
template <class Function>
bool dies(const Function& function) {
  const pid_t child = ::fork();
  if (child == 0) {
    // Nothing may report this death, since it is wanted.
    static_cast<void>(!std::freopen("/dev/null", "w", stderr));
    for (const int signal : {SIGSEGV, SIGBUS, SIGABRT}) ::signal(signal, SIG_DFL);
    function();
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return !(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

// Makes the device as new, whatever the test before did.
struct FreshDevice {
  FreshDevice() {
    control().lose_device(0);
    control().set_seed(1);
    control().set_drops_waits(false);
    control().clear_complaint();
    static_cast<void>(cudaGetLastError());
  }
};

class TestStream {
 public:
  TestStream() {
    REQUIRE(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking) == cudaSuccess);
  }
  ~TestStream() { static_cast<void>(cudaStreamDestroy(stream_)); }
  TestStream(const TestStream&) = delete;
  TestStream& operator=(const TestStream&) = delete;
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

cudaError_t copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const TestStream stream;
  const cudaError_t asked = cudaMemcpyAsync(to, from, bytes, kind, stream);
  return asked == cudaSuccess ? cudaStreamSynchronize(stream) : asked;
}

// Memory that is never freed: work that nobody waited for may still write to it.
template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(const std::vector<T>& values) : count_(values.size()) {
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&data_), count_ * sizeof(T)) == cudaSuccess);
    REQUIRE(copy(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  }
  T* get() const { return data_; }
  std::vector<T> read(cudaStream_t stream) const {
    std::vector<T> values(count_);
    REQUIRE(cudaMemcpyAsync(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost,
                            stream) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
    return values;
  }

 private:
  T* data_ = nullptr;
  std::size_t count_;
};

template <class... Parameters, class... Arguments>
cudaError_t launch(cudaStream_t stream, unsigned blocks, unsigned threads,
                   void (*kernel)(Parameters...), Arguments... arguments) {
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = stream;
  return cudaLaunchKernelEx(&config, kernel, static_cast<Parameters>(arguments)...);
}

struct Padded {
  std::uint32_t* to;
  std::uint32_t value;      // and four bytes that mean nothing
  std::uint32_t* more[64];  // too much to be copied member by member, which loses padding
};
__global__ void write_value(Padded padded) { *padded.to = padded.value; }
__global__ void divergent_barrier(float* y) {
  if (threadIdx.x < 40) __syncthreads();
  y[threadIdx.x] = 1;
}
__global__ void two_barriers(float* y) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
  y[threadIdx.x] = 1;
}
__global__ void lane_is_missing(float* y) {
  if (threadIdx.x % 2) y[threadIdx.x] = __shfl_xor_sync(~0u, 1.0f, 1);
}
__global__ void part_of_a_warp(float* y) { y[threadIdx.x] = __shfl_xor_sync(0xFFFFu, 1.0f, 1); }
__global__ void reads_unwritten(float* y) {
  __shared__ float values[64];
  const float before = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = 1;
  y[blockIdx.x * blockDim.x + threadIdx.x] = before;
}
__global__ void writes_at(float* y, long at) { y[at] = 1; }
struct Hidden {
  float* const* pointer;
};
__global__ void follows(Hidden hidden) { **hidden.pointer = 1; }
__global__ void write_byte(unsigned char* to) { *to = 0; }
__global__ void add(float* to, const float* from, float value) { *to = *from + value; }

// y = x + 1 in one stream, z = y + 1 in another.
std::set<float> results(bool waits) {
  std::set<float> seen;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    const TestStream one, two;
    const DeviceArray<float> x({1}), y({10}), z({0});
    cudaEvent_t event = nullptr;
    REQUIRE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming) == cudaSuccess);
    control().set_seed(seed);
    REQUIRE(launch(one, 1, 1, add, y.get(), x.get(), 1.0f) == cudaSuccess);
    REQUIRE(cudaEventRecord(event, one) == cudaSuccess);
    if (waits) REQUIRE(cudaStreamWaitEvent(two, event, 0) == cudaSuccess);
    REQUIRE(launch(two, 1, 1, add, z.get(), y.get(), 1.0f) == cudaSuccess);
    seen.insert(z.read(two)[0]);
    REQUIRE(cudaEventDestroy(event) == cudaSuccess);
  }
  return seen;
}

const std::size_t kPage = emulated::AddressSpace::granularity();

// Device memory that is mapped page by page.
struct VirtualMemory {
  VirtualMemory() {
    REQUIRE(cuMemAddressReserve(&at, 4 * kPage, 0, 0, 0) == CUDA_SUCCESS);
    REQUIRE(cuMemCreate(&memory, kPage, &properties, 0) == CUDA_SUCCESS);
  }
  const CUmemAllocationProp properties = {CU_MEM_ALLOCATION_TYPE_PINNED,
                                          {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr at = 0;
  CUmemGenericAllocationHandle memory = 0;
};

}  // namespace

TEST_CASE("Mistakes in a kernel lose the device and are named") {
  const FreshDevice fresh;
  const TestStream stream;
  const DeviceArray<float> y(std::vector<float>(64));
  const auto fails = [&](cudaError_t code, const char* name, const char* words, auto... kernel) {
    REQUIRE(launch(stream, 2, 64, kernel...) == cudaSuccess);
    CHECK(cudaStreamSynchronize(stream) == code);
    INFO(control().last_complaint());
    CHECK(complained_of(name));
    CHECK(complained_of(words));
    CHECK(cudaGetLastError() == code);
    CHECK(cudaGetLastError() == code);  // it stays
    control().lose_device(0);
  };
  fails(cudaErrorLaunchFailure, "divergent_barrier", "never reaches", divergent_barrier, y.get());
  fails(cudaErrorLaunchFailure, "two_barriers", "waits at line", two_barriers, y.get());
  fails(cudaErrorLaunchFailure, "lane_is_missing", "never comes", lane_is_missing, y.get());
  fails(cudaErrorLaunchFailure, "part_of_a_warp", "not emulated", part_of_a_warp, y.get());
  fails(cudaErrorIllegalAddress, "writes_at", "nothing is mapped", writes_at, y.get(),
        long{1} << 20);
  fails(cudaErrorIllegalAddress, "follows", "pointers reach a kernel in its arguments", follows,
        Hidden{DeviceArray<float*>({y.get()}).get()});
}

#if defined(__SANITIZE_THREAD__)
// Sums of 64 numbers and their neighbours, again and again, without one of two barriers.
template <int kWithout, int kBlocks>
__global__ void neighbours(float* y, int rounds) {
  __shared__ float values[64];
  const unsigned at = threadIdx.x, next = (at + 1) % 64;
  float* const own = y + (kBlocks == 1 ? 0 : 64 * blockIdx.x);
  for (int i = 0; i < rounds; ++i) {
    values[at] = own[at];
    if (kWithout != 0) __syncthreads();
    own[at] = values[at] + values[next];
    if (kWithout != 1) __syncthreads();
  }
}
__global__ void all_write(float* y) { *y = 1; }

TEST_CASE("Threads that no barrier orders race, also where the numbers come right") {
  const FreshDevice fresh;
  const TestStream stream;
  // Each race is reported once: each kernel here is a function of its own, with memory of its own.
  const auto race = [&](unsigned blocks, unsigned threads, auto kernel, auto... rest) {
    const DeviceArray<float> y(std::vector<float>(256));
    races = 0;
    races_are_wanted = true;
    REQUIRE(launch(stream, blocks, threads, kernel, y.get(), rest...) == cudaSuccess);
    REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
    races_are_wanted = false;
    return races > 0;
  };
  CHECK(race(1, 64, neighbours<0, 1>, 1));
  CHECK(race(1, 64, neighbours<1, 1>, 3));
  CHECK_FALSE(race(1, 64, neighbours<1, 2>, 1));
  CHECK_FALSE(race(1, 64, neighbours<2, 1>, 3));
  CHECK_FALSE(race(3, 64, neighbours<2, 3>, 3));
  CHECK(race(3, 64, neighbours<2, 1>, 1));  // blocks that write to the same elements
  CHECK_FALSE(race(1, 1, all_write));
  CHECK(race(3, 1, all_write));
}
#endif

TEST_CASE("Shared memory holds garbage when a block begins") {
  const FreshDevice fresh;
  const TestStream stream;
  const DeviceArray<float> y(std::vector<float>(256));
  for (int run = 0; run < 3; ++run) {
    REQUIRE(launch(stream, 4, 64, reads_unwritten, y.get()) == cudaSuccess);
    for (const float value : y.read(stream)) REQUIRE(value != value);
  }
}

TEST_CASE("A value that with what its padding holds would be an address stays what it is") {
  const FreshDevice fresh;
  const TestStream stream;
  const DeviceArray<std::uint32_t> y({0});
  const std::vector<std::uint32_t*> words(sizeof(Padded) / sizeof(void*), y.get());
  Padded padded;
  std::memcpy(&padded, words.data(), sizeof(padded));
  REQUIRE(launch(stream, 1, 1, write_value, padded) == cudaSuccess);
  CHECK(y.read(stream)[0] == static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(y.get())));
}

TEST_CASE("The host can neither read nor write device memory") {
  const FreshDevice fresh;
  const DeviceArray<float> x({1});
  volatile float* const device = x.get();
  CHECK(dies([=] { static_cast<void>(*device); }));
  CHECK(dies([=] { *device = 1; }));
}

TEST_CASE("What is written behind a block's end is found") {
  const FreshDevice fresh;
  if (emulated::sanitizers::kAddress) return;  // the sanitizer finds it first
  const TestStream stream;
  unsigned char* block = nullptr;
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&block), 100) == cudaSuccess);
  REQUIRE(launch(stream, 1, 1, write_byte, block + 100) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(cudaFree(block) == cudaErrorIllegalAddress);
  CHECK(complained_of("behind its end"));
  control().lose_device(0);
}

TEST_CASE("Virtual memory is checked as the driver does, and its contents move with it") {
  const FreshDevice fresh;
  const VirtualMemory own;
  const CUdeviceptr at = own.at;
  CUmemGenericAllocationHandle other = 0;
  CHECK(cuMemCreate(&other, kPage + 1, &own.properties, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemSetAccess(at, kPage, &own.access, 1) != CUDA_SUCCESS);
  REQUIRE(cuMemMap(at, kPage, 0, own.memory, 0) == CUDA_SUCCESS);
  CHECK(cuMemMap(at, kPage, 0, own.memory, 0) == CUDA_ERROR_ALREADY_MAPPED);
  int value = 7, got = 0;
  void* const pointer = reinterpret_cast<void*>(at);
  CHECK(copy(pointer, &value, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
  REQUIRE(cuMemSetAccess(at, kPage, &own.access, 1) == CUDA_SUCCESS);
  REQUIRE(copy(pointer, &value, 4, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cuMemUnmap(at, kPage / 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAddressFree(at, 4 * kPage) != CUDA_SUCCESS);
  REQUIRE(cuMemUnmap(at, kPage) == CUDA_SUCCESS);
  CHECK(cuMemUnmap(at, kPage) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuMemMap(at + kPage, kPage, 0, own.memory, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemSetAccess(at + kPage, kPage, &own.access, 1) == CUDA_SUCCESS);
  void* const moved = reinterpret_cast<void*>(at + kPage);
  REQUIRE(copy(&got, moved, 4, cudaMemcpyDeviceToHost) == cudaSuccess);
  CHECK(got == 7);
  size_t before = 0, after = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&before, &total) == cudaSuccess);
  REQUIRE(cuMemRelease(own.memory) == CUDA_SUCCESS);
  REQUIRE(cuMemUnmap(at + kPage, kPage) == CUDA_SUCCESS);
  REQUIRE(cudaMemGetInfo(&after, &total) == cudaSuccess);
  CHECK(after - before == kPage);
  CHECK(cuMemAddressFree(at, 4 * kPage) == CUDA_SUCCESS);
}

TEST_CASE("Work on memory that was unmapped before it is done loses the device") {
  const FreshDevice fresh;
  const TestStream stream;
  const VirtualMemory own;
  REQUIRE(cuMemMap(own.at, kPage, 0, own.memory, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemSetAccess(own.at, kPage, &own.access, 1) == CUDA_SUCCESS);
  auto* const byte = reinterpret_cast<unsigned char*>(own.at);
  REQUIRE(launch(stream, 1, 1, write_byte, byte) == cudaSuccess);
  REQUIRE(cuMemUnmap(own.at, kPage) == CUDA_SUCCESS);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
  control().lose_device(0);
  CHECK(cuMemRelease(own.memory) == CUDA_SUCCESS);
  CHECK(cuMemAddressFree(own.at, 4 * kPage) == CUDA_SUCCESS);
}

TEST_CASE("Work is done when somebody waits for it, and not before") {
  const FreshDevice fresh;
  const TestStream stream;
  const DeviceArray<float> x({1}), y({0});
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

TEST_CASE("A wait that is forgotten shows for some seed, and one that is kept for none") {
  const FreshDevice fresh;
  CHECK(results(true) == std::set<float>{3});
  CHECK(results(false) == std::set<float>{3, 11});
  control().set_drops_waits(true);
  CHECK(results(true) == std::set<float>{3, 11});
  control().set_drops_waits(false);
}

TEST_CASE("The default stream is refused, and a captured one that is waited for ends its capture") {
  const FreshDevice fresh;
  const TestStream stream;
  const DeviceArray<float> x({1});
  CHECK(launch(nullptr, 1, 1, add, x.get(), x.get(), 1.0f) == cudaErrorInvalidResourceHandle);
  CHECK(complained_of("default stream"));
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorStreamCaptureUnsupported);
  CHECK(launch(stream, 1, 1, add, x.get(), x.get(), 1.0f) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(graph == nullptr);
}

TEST_CASE("cuBLASLt takes memory for its handle, and refuses what the library refuses") {
  const FreshDevice fresh;
  emulated::Statistics before = {}, after = {};
  control().statistics(&before);
  cublasLtHandle_t handle = nullptr;
  control().set_capacity(before.bytes);
  CHECK(cublasLtCreate(&handle) == CUBLAS_STATUS_ALLOC_FAILED);
  control().set_capacity(std::size_t{4} << 30);
  REQUIRE(cublasLtCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  control().statistics(&after);
  CHECK(after.bytes >= before.bytes + (std::size_t{2} << 20));

  // Sums of 256 products split, which takes workspace.
  constexpr std::uint64_t kSize = 256;
  const DeviceArray<float> matrix(std::vector<float>(kSize * kSize, 1));
  const DeviceArray<char> workspace(std::vector<char>(std::size_t{2} << 20));
  const TestStream stream;
  const float one = 1, zero = 0;
  // The status of the heuristic; if that succeeds, of a launch of its first algorithm.
  const auto status = [&](std::uint64_t k, int transpose_a, int epilogue, std::size_t past) {
    const std::uint64_t most = std::uint64_t{1} << 20;
    void* const vector = matrix.get();
    cublasLtMatrixLayoutOpaque_t a, b, d;
    a = {CUDA_R_32F, 1, transpose_a ? k : kSize, transpose_a ? kSize : k, kSize};
    b = {CUDA_R_32F, 1, k, kSize, kSize};
    d = {CUDA_R_32F, 1, kSize, kSize, kSize};
    cublasLtMatmulDescOpaque_t operation = {.transpose_a = transpose_a,
                                            .epilogue = static_cast<std::uint32_t>(epilogue),
                                            .bias = vector};
    cublasLtMatmulPreferenceOpaque_t preference = {.workspace_bytes = most};
    cublasLtMatmulHeuristicResult_t found[4];
    int count = 0;
    const cublasStatus_t offered = cublasLtMatmulAlgoGetHeuristic(
        handle, &operation, &a, &b, &d, &d, &preference, 4, found, &count);
    if (offered != CUBLAS_STATUS_SUCCESS) return offered;
    return cublasLtMatmul(handle, &operation, &one, matrix.get(), &a, matrix.get(), &b, &zero,
                          matrix.get(), &d, matrix.get(), &d, &found[0].algo,
                          workspace.get() + past, found[0].workspaceSize, stream);
  };
  CHECK(status(kSize, 0, CUBLASLT_EPILOGUE_BGRADA, 0) == CUBLAS_STATUS_SUCCESS);
  CHECK(status(kSize, 1, CUBLASLT_EPILOGUE_DEFAULT, 0) == CUBLAS_STATUS_SUCCESS);
  CHECK(status(kSize, 1, CUBLASLT_EPILOGUE_BGRADA, 0) == CUBLAS_STATUS_NOT_SUPPORTED);
  CHECK(status(kSize, 0, CUBLASLT_EPILOGUE_DEFAULT, 16) == CUBLAS_STATUS_INVALID_VALUE);
  CHECK(status(252, 0, CUBLASLT_EPILOGUE_DEFAULT, 0) == CUBLAS_STATUS_NOT_SUPPORTED);  // refused
  control().statistics(&before);
  CHECK(cublasLtDestroy(handle) == CUBLAS_STATUS_SUCCESS);
  control().statistics(&after);
  CHECK(after.bytes < before.bytes);
}

TEST_CASE("A descriptor of cuDNN's backend is refused until it is whole, and stays as it is then") {
  const auto make = [](cudnnBackendDescriptorType_t type) {
    cudnnBackendDescriptor_t made = nullptr;
    REQUIRE(cudnnBackendCreateDescriptor(type, &made) == CUDNN_STATUS_SUCCESS);
    return made;
  };
  const auto set = [](cudnnBackendDescriptor_t to, auto name, auto type, const auto& values) {
    return cudnnBackendSetAttribute(to, name, type, static_cast<std::int64_t>(std::size(values)),
                                    std::data(values));
  };
  cudnnBackendDescriptor_t const tensor = make(CUDNN_BACKEND_TENSOR_DESCRIPTOR),
                                 graph = make(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR),
                                 pack = make(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const std::int64_t one[] = {1}, alignment[] = {16}, dims[] = {1, 2, 3, 4};
  const std::int64_t strides[] = {24, 12, 4, 1}, twice[] = {7, 7};
  const cudnnDataType_t type[] = {CUDNN_DATA_HALF};
  CHECK(set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_DOUBLE, one) ==
        CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE);
  CHECK(set(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, one) == CUDNN_STATUS_BAD_PARAM);
  CHECK(set(tensor, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, type) ==
        CUDNN_STATUS_BAD_PARAM);
  CHECK(set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, one) == CUDNN_STATUS_SUCCESS);
  CHECK(set(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type) ==
        CUDNN_STATUS_SUCCESS);
  CHECK(set(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, alignment) ==
        CUDNN_STATUS_SUCCESS);
  CHECK(set(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, dims) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnBackendFinalize(tensor) == CUDNN_STATUS_BAD_PARAM);  // without strides
  CHECK(set(tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides) == CUDNN_STATUS_SUCCESS);
  CHECK(cudnnBackendFinalize(tensor) == CUDNN_STATUS_SUCCESS);
  CHECK(set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, one) == CUDNN_STATUS_BAD_PARAM);
  const cudnnBackendDescriptor_t no_operation[] = {tensor};
  CHECK(set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, no_operation) ==
        CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE);
  void* const pointers[] = {nullptr, nullptr};
  CHECK(set(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, twice) ==
        CUDNN_STATUS_SUCCESS);
  CHECK(set(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers) ==
        CUDNN_STATUS_SUCCESS);
  CHECK(cudnnBackendFinalize(pack) == CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES);
  for (const cudnnBackendDescriptor_t each : {tensor, graph, pack})
    CHECK(cudnnBackendDestroyDescriptor(each) == CUDNN_STATUS_SUCCESS);
}

}  // namespace ebb::tests
