#include "ebb/kernels/cuda/conv_cudnn_plan.h"

#if EBB_HAS_CUDNN

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

namespace ebb::cuda {
namespace {

const Cudnn& library() noexcept { return *cudnn(); }
bool done(cudnnStatus_t status) noexcept { return status == CUDNN_STATUS_SUCCESS; }

cudnnDataType_t data_type(DType dtype) noexcept {
  return dtype == DType::f16    ? CUDNN_DATA_HALF
         : dtype == DType::bf16 ? CUDNN_DATA_BFLOAT16
                                : CUDNN_DATA_FLOAT;
}

// CUDNN_ATTR_ENGINEHEUR_DEVICEPROP and CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP, since cuDNN 9.8.
constexpr auto kHeuristicsDevice = static_cast<cudnnBackendAttributeName_t>(204);
constexpr auto kPlanDevice = static_cast<cudnnBackendAttributeName_t>(407);

enum Id : std::int64_t { kX = 1, kWeights, kY };
constexpr std::int64_t kIds[] = {kX, kWeights, kY};
constexpr std::int64_t kOperandAlignment = 16;

using Dims = std::array<std::int64_t, 4>;

BackendDescriptor tensor(Id id, DType dtype, const Dims& dims) noexcept {
  const Dims strides = {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
  const cudnnDataType_t type = data_type(dtype);
  const std::int64_t number = id;
  BackendDescriptor made(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
  made.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &number);
  made.set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &type);
  made.set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &kOperandAlignment);
  made.set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, dims.data());
  made.set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, strides.data());
  made.finalize();
  return made;
}

// Sums are f32 for every dtype.
BackendDescriptor convolution(const ConvLayout& of) noexcept {
  const std::int64_t axes = 2;
  const cudnnDataType_t sums = CUDNN_DATA_FLOAT;
  const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
  BackendDescriptor made(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  made.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes);
  made.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &sums);
  made.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
  made.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, axes, of.padding);
  made.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, axes, of.padding);
  made.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, axes, of.dilation);
  made.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, axes, of.stride);
  made.finalize();
  return made;
}

// The operation of a pass, and the first of its attributes: the three have them in one order.
constexpr struct {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t first;
} kOperations[] = {{CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA},
                   {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA},
                   {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
                    CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA}};

// Whether the engine's results are ebb's: the same bits every time, sums in f32, f32 in full where
// TF32 is not allowed. Transformed tiles (Winograd, FFT) round differently from plain sums.
bool is_wanted(const cudnnBackendNumericalNote_t* notes, std::int64_t count,
               const CudnnConvCase& of) noexcept {
  const auto has = [&](cudnnBackendNumericalNote_t note) {
    return std::find(notes, notes + count, note) != notes + count;
  };
  return !has(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC) &&
         !has(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION) &&
         !has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS) && !has(CUDNN_NUMERICAL_NOTE_FFT) &&
         !has(CUDNN_NUMERICAL_NOTE_WINOGRAD) &&
         (of.dtype != DType::f32 || of.tf32 || !has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
}

}  // namespace

BackendDescriptor::BackendDescriptor(cudnnBackendDescriptorType_t type) noexcept
    : is_good_(done(library().cudnnBackendCreateDescriptor(type, &handle_))) {
  if (!is_good_) handle_ = nullptr;
}
BackendDescriptor::~BackendDescriptor() {
  if (handle_ != nullptr) static_cast<void>(library().cudnnBackendDestroyDescriptor(handle_));
}
void BackendDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                            std::int64_t count, const void* values) noexcept {
  is_good_ =
      is_good_ && done(library().cudnnBackendSetAttribute(handle_, name, type, count, values));
}
bool BackendDescriptor::finalize() noexcept {
  return is_good_ = is_good_ && done(library().cudnnBackendFinalize(handle_));
}
std::int64_t BackendDescriptor::get(cudnnBackendAttributeName_t name,
                                    cudnnBackendAttributeType_t type, std::int64_t count,
                                    void* values) const noexcept {
  std::int64_t found = 0;
  if (!is_good_ ||
      !done(library().cudnnBackendGetAttribute(handle_, name, type, count, &found, values)))
    return -1;
  return found;
}

bool CudnnConvPlan::choose(const CudnnConvCase& of, std::size_t limit, cudnnHandle_t handle,
                           cudnnBackendDescriptor_t properties) {
  const ConvLayout& size = of.of;
  const auto [type, first] = kOperations[static_cast<int>(of.pass)];
  const int shift = first - CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA;
  const auto name = [shift](cudnnBackendAttributeName_t of_forward) {
    return static_cast<cudnnBackendAttributeName_t>(of_forward + shift);
  };
  const std::int64_t channels = size.groups * size.channels, filters = size.groups * size.filters;
  const double alpha = 1, beta = of.adds ? 1 : 0;
  const BackendDescriptor x =
      tensor(kX, of.dtype, {size.images, channels, size.height, size.width});
  const BackendDescriptor weights =
      tensor(kWeights, of.dtype, {filters, size.channels, size.kernel_height, size.kernel_width});
  const BackendDescriptor y =
      tensor(kY, of.dtype, {size.images, filters, size.out_height, size.out_width});
  const BackendDescriptor shape = convolution(size);
  BackendDescriptor operation(type), graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  operation.set(name(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA), CUDNN_TYPE_DOUBLE, 1, &alpha);
  operation.set(name(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA), CUDNN_TYPE_DOUBLE, 1, &beta);
  operation.set(name(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC), shape);
  operation.set(name(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X), x);
  operation.set(name(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W), weights);
  operation.set(name(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y), y);
  if (!operation.finalize()) return false;
  graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, operation);
  if (properties == nullptr)
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  if (!graph.finalize()) return false;

  for (const cudnnBackendHeurMode_t mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_FALLBACK}) {
    BackendDescriptor heuristics(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph);
    heuristics.set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, &mode);
    if (properties != nullptr)
      heuristics.set(kHeuristicsDevice, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &properties);
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
      if (take(std::move(configs[static_cast<std::size_t>(i)]), of, limit, handle, properties))
        return true;
  }
  return false;
}

bool CudnnConvPlan::take(BackendDescriptor config, const CudnnConvCase& of, std::size_t limit,
                         cudnnHandle_t handle, cudnnBackendDescriptor_t properties) noexcept {
  BackendDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  cudnnBackendDescriptor_t of_config = engine.get();
  cudnnBackendNumericalNote_t notes[CUDNN_NUMERICAL_NOTE_TYPE_COUNT] = {};
  if (config.get(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &of_config) != 1 ||
      engine.get(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64, 1, &engine_) != 1)
    return false;
  const std::int64_t count = engine.get(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE,
                                        std::ssize(notes), notes);
  if (count < 0 || count > std::ssize(notes) || !is_wanted(notes, count, of)) return false;

  BackendDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  plan.set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, config);
  if (properties == nullptr) {
    plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle);
  } else {
    plan.set(kPlanDevice, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &properties);
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

cudnnStatus_t CudnnConvPlan::execute(cudnnHandle_t handle, const void* x, const void* weights,
                                     const void* y, void* workspace) noexcept {
  void* const at[] = {const_cast<void*>(x), const_cast<void*>(weights), const_cast<void*>(y),
                      workspace_bytes_ == 0 ? nullptr : workspace};
  if (pack_.get() == nullptr || !std::ranges::equal(at, packed_)) {
    BackendDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, std::ssize(kIds), kIds);
    pack.set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, std::ssize(kIds), at);
    pack.set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &at[std::size(kIds)]);
    if (!pack.finalize()) return CUDNN_STATUS_INTERNAL_ERROR;
    pack_ = std::move(pack);
    std::ranges::copy(at, packed_);
  }
  return library().cudnnBackendExecute(handle, plan_.get(), pack_.get());
}

}  // namespace ebb::cuda

#endif
