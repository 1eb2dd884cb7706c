// A plan of cuDNN for a pass of a convolution.
#pragma once
#include <utility>

#include "ebb/kernels/cuda/plans/conv_plan.h"
#include "ebb/kernels/cuda/runtime/libraries.h"

#if EBB_HAS_CUDNN

namespace ebb::cuda {

// A descriptor of cuDNN's backend interface, created and destroyed with this object.
class BackendDescriptor {
 public:
  BackendDescriptor() noexcept = default;
  explicit BackendDescriptor(cudnnBackendDescriptorType_t type) noexcept;
  BackendDescriptor(BackendDescriptor&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), is_good_(other.is_good_) {}
  BackendDescriptor& operator=(BackendDescriptor&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(is_good_, other.is_good_);
    return *this;
  }
  ~BackendDescriptor();

  cudnnBackendDescriptor_t get() const noexcept { return handle_; }
  // A failure shows in finalize().
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, std::int64_t count,
           const void* values) noexcept;
  void set(cudnnBackendAttributeName_t name, const BackendDescriptor& of) noexcept {
    set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &of.handle_);
  }
  bool finalize() noexcept;
  // Returns the number of values that there are, of which at most `count` are written; 0 where the
  // library does not answer.
  std::int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   std::int64_t count, void* values) const noexcept;

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
  bool is_good_ = false;
};

struct CudnnConvCase {
  ConvPass pass = ConvPass::forward;
  ConvLayout of;
  DType dtype = DType::f32;
  bool adds = false;  // to what the result's memory holds
  bool tf32 = false;
};

class CudnnConvPlan {
 public:
  // Whether cuDNN has a plan within `limit` bytes of workspace. It is one for the handle's device,
  // or for the device described by `properties`, for programs without a GPU.
  bool choose(const CudnnConvCase& of, std::size_t limit, cudnnHandle_t handle,
              cudnnBackendDescriptor_t properties = nullptr);
  // All are aligned to 16 bytes, the workspace to kConvAlignment.
  cudnnStatus_t execute(cudnnHandle_t handle, const void* x, const void* weights, const void* y,
                        void* workspace) noexcept;

  std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }
  std::int64_t engine() const noexcept { return engine_; }  // cuDNN's number
  // The plans that come first in cuDNN's order and that ebb does not take.
  int passed_over() const noexcept { return passed_over_; }
  bool uses_tensor_cores() const noexcept { return uses_tensor_cores_; }

 private:
  bool take(BackendDescriptor config, const CudnnConvCase& of, std::size_t limit,
            cudnnHandle_t handle, cudnnBackendDescriptor_t properties) noexcept;

  BackendDescriptor config_, plan_;
  std::size_t workspace_bytes_ = 0;
  std::int64_t engine_ = 0;
  int passed_over_ = 0;
  bool uses_tensor_cores_ = false;
  // The addresses of the last call: x, weights, y, workspace.
  BackendDescriptor pack_;
  void* packed_[4] = {};
};

}  // namespace ebb::cuda

#endif
