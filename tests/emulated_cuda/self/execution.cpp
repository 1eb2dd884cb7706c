// Kernels on fibers.
#include "ebb/tests/emulated_cuda/self/fixture.h"

namespace ebb::tests {
namespace {

template <class T>
__global__ void __launch_bounds__(256) sum(const T* __restrict__ x, T* y, long count) {
  __shared__ T parts[32];
  T total = 0;
  for (long i = threadIdx.x + static_cast<long>(blockIdx.x) * blockDim.x; i < count;
       i += static_cast<long>(gridDim.x) * blockDim.x)
    total += x[i];
  for (unsigned by = 16; by > 0; by /= 2) total += __shfl_down_sync(0xFFFFFFFFu, total, by);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = total;
  __syncthreads();
  if (threadIdx.x == 0) {
    total = 0;
    for (unsigned warp = 0; warp < blockDim.x / 32; ++warp) total += parts[warp];
    y[blockIdx.x] = total;
  }
}

// Needs the barrier between rounds.
__global__ void rotate(int* values, int rounds) {
  __shared__ int ring[128];
  ring[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  for (int round = 0; round < rounds; ++round) {
    const int next = ring[(threadIdx.x + 1) % blockDim.x];
    __syncthreads();
    ring[threadIdx.x] = next;
    __syncthreads();
  }
  values[threadIdx.x] = ring[threadIdx.x];
}

__global__ void votes(unsigned* out) {
  out[threadIdx.x] = __ballot_sync(0xFFFFFFFFu, threadIdx.x % 3 == 0);
  const unsigned half = threadIdx.x % 32 < 16 ? 0xFFFFu : 0xFFFF0000u;
  out[threadIdx.x] += __shfl_xor_sync(half, threadIdx.x, 1);
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
  if (threadIdx.x % 2) y[threadIdx.x] = __shfl_sync(0xFFFFFFFFu, 1.0f, 1);
}
__global__ void reads_unwritten(float* y) {
  __shared__ float values[64];
  const float before = values[threadIdx.x];
  __syncthreads();
  values[threadIdx.x] = 1;
  y[threadIdx.x] = before;
}
__global__ void writes_at(float* y, long at) { y[at] = 1; }
struct Hidden {
  float* const* pointer;
};
__global__ void follows(Hidden hidden) { **hidden.pointer = 1; }

}  // namespace

TEST_CASE("A reduction with shared memory and shuffles is right for every seed") {
  const FreshDevice fresh;
  const TestStream stream;
  const long count = 5000;
  std::vector<double> values;
  for (long i = 0; i < count; ++i) values.push_back(static_cast<double>(i % 7));
  const DeviceArray<double> x(values), y(3);
  double total = 0;
  for (const double value : values) total += value;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    control().set_seed(seed);
    REQUIRE(launch(stream, 3, 256, sum<double>, x.get(), y.get(), count) == cudaSuccess);
    double sums = 0;
    for (const double part : y.read(stream)) sums += part;
    REQUIRE(sums == total);
  }
}

TEST_CASE("Barriers keep rounds apart") {
  const FreshDevice fresh;
  const TestStream stream;
  const DeviceArray<int> values(128);
  REQUIRE(launch(stream, 1, 128, rotate, values.get(), 5) == cudaSuccess);
  const auto turned = values.read(stream);
  for (int i = 0; i < 128; ++i) REQUIRE(turned[static_cast<std::size_t>(i)] == (i + 5) % 128);
}

TEST_CASE("Votes and shuffles of a part of the warp") {
  const FreshDevice fresh;
  const TestStream stream;
  const DeviceArray<unsigned> out(64);
  REQUIRE(launch(stream, 1, 64, votes, out.get()) == cudaSuccess);
  const auto got = out.read(stream);
  for (unsigned i = 0; i < 64; ++i) {
    unsigned set = 0;
    for (unsigned lane = 0; lane < 32; ++lane)
      if ((i / 32 * 32 + lane) % 3 == 0) set |= 1u << lane;
    REQUIRE(got[i] == set + (i ^ 1));
  }
}

TEST_CASE("A value that with what its padding holds would be an address stays what it is") {
  const FreshDevice fresh;
  const TestStream stream;
  const DeviceArray<std::uint32_t> y(1);
  const std::vector<std::uint32_t*> words(sizeof(Padded) / sizeof(void*), y.get());
  Padded padded;
  std::memcpy(&padded, words.data(), sizeof(padded));
  REQUIRE(launch(stream, 1, 1, write_value, padded) == cudaSuccess);
  CHECK(y.read(stream)[0] == static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(y.get())));
}

TEST_CASE("Mistakes in a kernel lose the device and are named") {
  const FreshDevice fresh;
  {
    const TestStream stream;
    const DeviceArray<float> y(64);
    const auto fails = [&](cudaError_t code, const char* name, const char* words, auto... kernel) {
      REQUIRE(launch(stream, 2, 64, kernel...) == cudaSuccess);
      CHECK(cudaStreamSynchronize(stream) == code);
      INFO(control().last_complaint());
      CHECK(complained_of(name));
      CHECK(complained_of(words));
      CHECK(cudaGetLastError() == code);
      CHECK(cudaGetLastError() == code);  // it stays
      control().lose_device(0, 0);
    };
    fails(cudaErrorLaunchFailure, "divergent_barrier", "never reaches", divergent_barrier, y.get());
    fails(cudaErrorLaunchFailure, "two_barriers", "waits at line", two_barriers, y.get());
    fails(cudaErrorLaunchFailure, "lane_is_missing", "never comes", lane_is_missing, y.get());
    fails(cudaErrorIllegalAddress, "writes_at", "nothing is mapped", writes_at, y.get(),
          long{1} << 20);
    fails(cudaErrorIllegalAddress, "follows", "pointers reach a kernel in its arguments", follows,
          Hidden{DeviceArray<float*>({y.get()}).get()});
  }
}

TEST_CASE("Shared memory holds garbage when a block begins") {
  const FreshDevice fresh;
  const TestStream stream;
  const DeviceArray<float> y(64);
  for (int run = 0; run < 3; ++run) {
    REQUIRE(launch(stream, 4, 64, reads_unwritten, y.get()) == cudaSuccess);
    for (const float value : y.read(stream)) REQUIRE(value != value);
  }
}

}  // namespace ebb::tests
