#include "ebb/kernels/cuda/cudnn_plan.h"

#if EBB_HAS_CUDNN

#include <algorithm>
#include <iterator>

#include "ebb/core/kernels/carver.h"
#include "ebb/kernels/cuda/plans/cudnn_workspace.h"
#include "ebb/kernels/cuda/runtime/stream.h"

namespace ebb::cuda {
namespace {

// CUDNN_ATTR_ENGINEHEUR_DEVICEPROP and CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, since cuDNN 9.8.
constexpr auto kHeuristicsDevice = static_cast<cudnnBackendAttributeName_t>(204);
constexpr auto kPlanDevice = static_cast<cudnnBackendAttributeName_t>(407);

// Whether the engine's results are ebb's: the same bits every time, sums in f32. Transformed tiles
// (Winograd, FFT) round differently from plain sums.
bool is_wanted(const cudnnBackendNumericalNote_t* notes, std::int64_t count,
               bool tensor_cores) noexcept {
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::find(notes, notes + count, note) != notes + count;
  };
  return !has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) &&
         !has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) &&
         !has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) && !has(CUDNN_NUMERICAL_NOTE_FFT) &&
         !has(CUDNN_NUMERICAL_NOTE_WINOGRAD) &&
         (tensor_cores || !has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
}

}  // namespace

BackendDescriptor::BackendDescriptor(cudnnBackendDescriptorType_t type) noexcept
    : is_good_(done(cudnn()->cudnnBackendCreateDescriptor(type, &handle_))) {
  if (!is_good_) handle_ = nullptr;
}
BackendDescriptor::~BackendDescriptor() {
  if (handle_ != nullptr) static_cast<void>(cudnn()->cudnnBackendDestroyDescriptor(handle_));
}
void BackendDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                            std::int64_t count, const void* values) noexcept {
  is_good_ =
      is_good_ && done(cudnn()->cudnnBackendSetAttribute(handle_, name, type, count, values));
}
bool BackendDescriptor::finalize() noexcept {
  return is_good_ = is_good_ && done(cudnn()->cudnnBackendFinalize(handle_));
}
std::int64_t BackendDescriptor::get(cudnnBackendAttributeName_t name,
                                    cudnnBackendAttributeType_t type, std::int64_t count,
                                    void* values) const noexcept {
  std::int64_t found = 0;
  if (!is_good_ ||
      !done(cudnn()->cudnnBackendGetAttribute(handle_, name, type, count, &found, values)))
    return -1;
  return found;
}

BackendDescriptor backend_tensor(std::int64_t id, DType dtype, const BackendDims& dims,
                                 BackendPlace place) noexcept {
  constexpr std::int64_t kOperandAlignment = 16;
  const BackendDims strides = {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
  const cudnnDataType_t type = cudnn_type(dtype);
  const bool yes = true;
  BackendDescriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &id);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &kOperandAlignment);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, std::ssize(dims), dims.data());
  made.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, std::ssize(strides), strides.data());
  if (place == BackendPlace::by_value)
    made.set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &yes);
  if (place == BackendPlace::within)
    made.set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &yes);
  made.finalize();
  return made;
}

bool CudnnPlan::choose(const CudnnOperation& of, std::size_t limit, const CudnnTarget& target) {
  BackendDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, of.parts.back());
  if (target.handle != nullptr)
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  if (!graph.finalize()) return false;

  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    BackendDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (target.properties != nullptr)
      heuristics.set(kHeuristicsDevice, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target.properties);
    if (!heuristics.finalize()) continue;
    const auto results = [&](std::int64_t count, void* values) {
      return heuristics.get(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count,
                            values);
    };
    std::vector<BackendDescriptor> configs;
    std::vector<cudnnBackendDescriptor_t> handles;
    for (std::int64_t count = results(0, nullptr); count > 0; --count) {
      configs.emplace_back(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR);
      handles.push_back(configs.back().get());
    }
    const auto most = static_cast<std::int64_t>(handles.size());
    const std::int64_t count = std::min(most, most == 0 ? 0 : results(most, handles.data()));
    for (std::int64_t i = 0; i < count; ++i, ++passed_over_)
      if (take(std::move(configs[static_cast<std::size_t>(i)]), of.tensor_cores, limit, target))
        return true;
  }
  return false;
}

bool CudnnPlan::take(BackendDescriptor config, bool tensor_cores, std::size_t limit,
                     const CudnnTarget& target) noexcept {
  BackendDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t of_config = engine.get();
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT] = {};
  if (config.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &of_config) != 1 ||
      engine.get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &engine_) != 1)
    return false;
  const std::int64_t count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                        std::ssize(notes), notes);
  if (count < 0 || count > std::ssize(notes) || !is_wanted(notes, count, tensor_cores))
    return false;

  BackendDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (target.properties == nullptr) {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  } else {
    plan.set(kPlanDevice, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &target.properties);
  }
  std::int64_t workspace = 0;
  if (!plan.finalize() ||
      plan.get(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64, 1, &workspace) != 1)
    return false;
  if (workspace < 0 || static_cast<std::size_t>(workspace) > limit) return false;
  config_ = std::move(config);
  plan_ = std::move(plan);
  workspace_bytes_ = static_cast<std::size_t>(workspace);
  uses_tensor_cores_ =
      std::find(notes, notes + count, CUDNN_NUMERICAL_NOTE_TENSOR_CORE) != notes + count;
  return true;
}

cudnnStatus_t CudnnPlan::execute(cudnnHandle_t handle, std::span<const void* const> operands,
                                 void* workspace) noexcept {
  const void* at[kMostOperands + 1] = {};
  std::ranges::copy(operands, at);
  at[kMostOperands] = workspace_bytes_ == 0 ? nullptr : workspace;
  if (pack_.get() == nullptr || !std::ranges::equal(at, packed_)) {
    static constexpr std::int64_t kIds[kMostOperands] = {1, 2, 3, 4, 5, 6, 7};
    const auto count = static_cast<std::int64_t>(operands.size());
    BackendDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, kIds);
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count, at);
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &at[kMostOperands]);
    if (!pack.finalize()) return CUDNN_STATUS_INTERNAL_ERROR;
    pack_ = std::move(pack);
    std::ranges::copy(at, packed_);
  }
  return cudnn()->cudnnBackendExecute(handle, plan_.get(), pack_.get());
}

bool CudnnPlan::try_run(const KernelContext& context, std::span<const void* const> operands,
                        const char* what, Status& status) noexcept {
  std::uintptr_t together = 0;
  for (const void* data : operands) together |= reinterpret_cast<std::uintptr_t>(data);
  const char* problem = nullptr;
  const cudnnHandle_t handle = cuda_stream(context.stream).cudnn(problem);
  if (together % 16 != 0 || handle == nullptr) return false;
  Carver carver(context.workspace);
  std::byte* const workspace = carver.take_bytes(workspace_bytes_, kCudnnAlignment);
  const cudnnStatus_t answer = execute(handle, operands, workspace);
  if (answer >= CUDNN_STATUS_NOT_SUPPORTED && answer < CUDNN_STATUS_INTERNAL_ERROR) return false;
  status = done(answer) ? Status() : Status::fail(what, static_cast<int>(answer));
  return true;
}

}  // namespace ebb::cuda

#endif
