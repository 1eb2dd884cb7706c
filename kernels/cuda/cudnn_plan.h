// A plan of cuDNN's backend interface for an operation.
#pragma once
#include <array>
#include <span>
#include <utility>
#include <vector>

#include "ebb/core/kernels/device_kernel.h"
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
  // Returns the number of values that there are, of which at most `count` are written; -1 where the
  // library does not answer.
  std::int64_t get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                   std::int64_t count, void* values) const noexcept;

 private:
  cudnnBackendDescriptor_t handle_ = nullptr;
  bool is_good_ = false;
};

using BackendDims = std::array<std::int64_t, 4>;

// A packed tensor. `id`: its place among a plan's operands, from 1 on. By value: one number in the
// host's memory. Virtual: only within the operation.
enum class BackendPlace { device, by_value, within };
BackendDescriptor backend_tensor(std::int64_t id, DType dtype, const BackendDims& dims,
                                 BackendPlace place = BackendPlace::device) noexcept;

// An operation and what it is made of, which lives until a plan is chosen. The operation is last.
struct CudnnOperation {
  std::vector<BackendDescriptor> parts;
  bool tensor_cores = false;  // whether an engine may use them
};

// The GPU that plans are for: the handle's, or one described by `properties`, for programs without
// a GPU.
struct CudnnTarget {
  cudnnHandle_t handle = nullptr;
  cudnnBackendDescriptor_t properties = nullptr;
};

class CudnnPlan {
 public:
  // Whether cuDNN has a plan within `limit` bytes of workspace whose results are the same every
  // time: cuDNN's first, without timing.
  bool choose(const CudnnOperation& of, std::size_t limit, const CudnnTarget& target);
  // Computes it in a kernel's stream and workspace, on operands in the order of their ids, and sets
  // the status. Returns false, having computed nothing, where one of them is not aligned to 16
  // bytes or the library refuses its plan after all. `what`: static, for the error's text.
  bool try_run(const KernelContext& context, std::span<const void* const> operands,
               const char* what, Status& status) noexcept;

  std::size_t workspace_bytes() const noexcept { return workspace_bytes_; }
  std::int64_t engine() const noexcept { return engine_; }  // cuDNN's number
  // The plans that come first in cuDNN's order and that ebb does not take.
  int passed_over() const noexcept { return passed_over_; }
  bool uses_tensor_cores() const noexcept { return uses_tensor_cores_; }

 private:
  bool take(BackendDescriptor config, bool tensor_cores, std::size_t limit,
            const CudnnTarget& target) noexcept;
  cudnnStatus_t execute(cudnnHandle_t handle, std::span<const void* const> operands,
                        void* workspace) noexcept;

  BackendDescriptor config_, plan_;
  std::size_t workspace_bytes_ = 0;
  std::int64_t engine_ = 0;
  int passed_over_ = 0;
  bool uses_tensor_cores_ = false;
  // The addresses of the last call, the workspace's last.
  static constexpr std::size_t kMostOperands = 7;
  BackendDescriptor pack_;
  const void* packed_[kMostOperands + 1] = {};
};

}  // namespace ebb::cuda

#endif
