// What tests of the emulation share.
#pragma once
#include <cuda_runtime.h>
#include <string>
#include <vector>

#include "ebb/tests/catch.h"
#include "ebb/tests/dies.h"
#include "ebb/tests/emulated_cuda/control.h"

namespace ebb::tests {

inline const emulated::Control& control() { return *ebb_emulated_control(); }

// As new, whatever the test before left.
struct FreshDevice {
  FreshDevice() {
    control().lose_device(0, 0);
    control().set_seed(1);
    control().set_at_once(false);
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

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(std::size_t count) : count_(count) {
    REQUIRE(cudaMalloc(reinterpret_cast<void**>(&data_), count * sizeof(T)) == cudaSuccess);
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    REQUIRE(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice) ==
            cudaSuccess);
  }
  ~DeviceArray() {
    static_cast<void>(cudaDeviceSynchronize());  // cudaFree promises no wait
    static_cast<void>(cudaFree(data_));
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
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

// What the device says once the kernel has run, and whether the emulation named it so.
inline bool complained_of(const std::string& text) {
  return std::string(control().last_complaint()).find(text) != std::string::npos;
}

}  // namespace ebb::tests
