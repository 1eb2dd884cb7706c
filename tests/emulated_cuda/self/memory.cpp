// Device memory.
#include <cuda.h>

#include "ebb/tests/emulated_cuda/execution/sanitizers.h"
#include "ebb/tests/emulated_cuda/memory/address_space.h"
#include "ebb/tests/emulated_cuda/self/fixture.h"

namespace ebb::tests {
namespace {

__global__ void write_byte(unsigned char* to) { *to = 0; }
const std::size_t kPage = emulated::AddressSpace::granularity();

}  // namespace

TEST_CASE("The host can neither read nor write device memory") {
  const FreshDevice fresh;
  const DeviceArray<float> x(std::vector<float>{1});
  volatile float* const device = x.get();
  CHECK(dies([=] { static_cast<void>(*device); }));
  CHECK(dies([=] { *device = 1; }));
}

TEST_CASE("What is written behind a block's end is found") {
  const FreshDevice fresh;
  if (emulated::sanitizers::kAddress) return;  // which find it before
  const TestStream stream;
  unsigned char* block = nullptr;
  REQUIRE(cudaMalloc(reinterpret_cast<void**>(&block), 100) == cudaSuccess);
  REQUIRE(launch(stream, 1, 1, write_byte, block + 100) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(cudaFree(block) == cudaErrorIllegalAddress);
  CHECK(complained_of("behind its end"));
  control().lose_device(0, 0);
}

TEST_CASE("Virtual memory is checked as the driver does, and its contents move with it") {
  const FreshDevice fresh;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr at = 0;
  CHECK(cuMemAddressReserve(&at, kPage / 2, 0, 0, 0) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuMemAddressReserve(&at, 4 * kPage, 0, 0, 0) == CUDA_SUCCESS);
  CUmemGenericAllocationHandle memory = 0;
  CHECK(cuMemCreate(&memory, kPage + 1, &properties, 0) == CUDA_ERROR_INVALID_VALUE);
  size_t before = 0, after = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&before, &total) == cudaSuccess);
  REQUIRE(cuMemCreate(&memory, kPage, &properties, 0) == CUDA_SUCCESS);
  REQUIRE(cudaMemGetInfo(&after, &total) == cudaSuccess);
  CHECK(before - after == kPage);
  CHECK(cuMemSetAccess(at, kPage, &access, 1) != CUDA_SUCCESS);
  REQUIRE(cuMemMap(at, kPage, 0, memory, 0) == CUDA_SUCCESS);
  CHECK(cuMemMap(at, kPage, 0, memory, 0) == CUDA_ERROR_ALREADY_MAPPED);
  void* const pointer = reinterpret_cast<void*>(at);
  CHECK(cudaMemset(pointer, 0, 4) == cudaErrorInvalidValue);
  REQUIRE(cuMemSetAccess(at, kPage, &access, 1) == CUDA_SUCCESS);
  int value = 7, got = 0;
  REQUIRE(cudaMemcpy(pointer, &value, 4, cudaMemcpyHostToDevice) == cudaSuccess);
  CHECK(cuMemUnmap(at, kPage / 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cuMemAddressFree(at, 4 * kPage) != CUDA_SUCCESS);
  REQUIRE(cuMemUnmap(at, kPage) == CUDA_SUCCESS);
  CHECK(cuMemUnmap(at, kPage) == CUDA_ERROR_INVALID_VALUE);
  REQUIRE(cuMemMap(at + kPage, kPage, 0, memory, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemSetAccess(at + kPage, kPage, &access, 1) == CUDA_SUCCESS);
  REQUIRE(cudaMemcpy(&got, reinterpret_cast<void*>(at + kPage), 4, cudaMemcpyDeviceToHost) ==
          cudaSuccess);
  CHECK(got == 7);
  REQUIRE(cuMemRelease(memory) == CUDA_SUCCESS);
  REQUIRE(cuMemUnmap(at + kPage, kPage) == CUDA_SUCCESS);
  REQUIRE(cudaMemGetInfo(&after, &total) == cudaSuccess);
  CHECK(before == after);
  CHECK(cuMemAddressFree(at, 4 * kPage) == CUDA_SUCCESS);
}

TEST_CASE("Work on memory that was unmapped before it is done loses the device") {
  const FreshDevice fresh;
  const TestStream stream;
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  const CUmemAccessDesc access = {properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUdeviceptr at = 0;
  CUmemGenericAllocationHandle memory = 0;
  REQUIRE(cuMemAddressReserve(&at, kPage, 0, 0, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemCreate(&memory, kPage, &properties, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemMap(at, kPage, 0, memory, 0) == CUDA_SUCCESS);
  REQUIRE(cuMemRelease(memory) == CUDA_SUCCESS);
  REQUIRE(cuMemSetAccess(at, kPage, &access, 1) == CUDA_SUCCESS);
  REQUIRE(launch(stream, 1, 1, write_byte, reinterpret_cast<unsigned char*>(at)) == cudaSuccess);
  REQUIRE(cuMemUnmap(at, kPage) == CUDA_SUCCESS);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
  control().lose_device(0, 0);
  CHECK(cuMemAddressFree(at, kPage) == CUDA_SUCCESS);
}

TEST_CASE("A device that is full says so") {
  const FreshDevice fresh;
  size_t free = 0, total = 0;
  REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
  control().set_capacity(0, total - free + (1 << 20));
  void* block = nullptr;
  CHECK(cudaMalloc(&block, 2 << 20) == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaGetLastError() == cudaSuccess);
  control().set_capacity(0, total);
}

}  // namespace ebb::tests
