#include "ebb/kernels/cuda/cudnn_operations.h"

#if EBB_HAS_CUDNN

namespace ebb::cuda {
namespace {

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

// Named in newer headers than ebb may be built with.
constexpr auto kAttention = static_cast<cudnnBackendDescriptorType_t>(41),
               kBandMask = static_cast<cudnnBackendDescriptorType_t>(44);
constexpr auto attribute(int number) noexcept {
  return static_cast<cudnnBackendAttributeName_t>(number);
}
// CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC; k, v, y, lse and the scale follow.
constexpr int kAttentionOperands = 2800;
constexpr auto kScoresGraph = attribute(2811),                        // ..._SDPA_FWD_SUBGRAPH
    kScoresBefore = attribute(2812), kScoresAfter = attribute(2813);  // ..._{INPUT,OUTPUT}_UID
// CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_{XDESC,BDESC,YDESC,COMPARISON_MODE}
constexpr auto kBandX = attribute(3000), kBandOutside = attribute(3005), kBandY = attribute(3006),
               kBandKeeps = attribute(3007);

}  // namespace

CudnnOperation describe(const CudnnConvCase& of) {
  const ConvLayout& size = of.of;
  const auto [type, first] = kOperations[static_cast<int>(of.pass)];
  const int shift = first - CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA;
  const auto name = [shift](cudnnBackendAttributeName_t of_forward) {
    return static_cast<cudnnBackendAttributeName_t>(of_forward + shift);
  };
  const std::int64_t channels = size.groups * size.channels, filters = size.groups * size.filters;
  const double alpha = 1, beta = of.adds ? 1 : 0;
  CudnnOperation made{.parts = {}, .tensor_cores = of.dtype != DType::f32 || of.tf32};
  const BackendDims dims[] = {{size.images, channels, size.height, size.width},
                              {filters, size.channels, size.kernel_height, size.kernel_width},
                              {size.images, filters, size.out_height, size.out_width}};
  for (std::int64_t i = 0; i < 3; ++i)
    made.parts.push_back(backend_tensor(i + 1, of.dtype, dims[i]));
  made.parts.push_back(convolution(size));
  BackendDescriptor operation(type);
  operation.set(name(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA), CUDNN_TYPE_DOUBLE, 1, &alpha);
  operation.set(name(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA), CUDNN_TYPE_DOUBLE, 1, &beta);
  operation.set(name(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X), made.parts[0]);
  operation.set(name(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W), made.parts[1]);
  operation.set(name(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y), made.parts[2]);
  operation.set(name(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC), made.parts[3]);
  operation.finalize();
  made.parts.push_back(std::move(operation));
  return made;
}

CudnnOperation describe_attention(const AttentionLayout& of, DType dtype, bool causal,
                                  bool keeps_lse) {
  enum Id : std::int64_t { kScale = 5, kOutside, kBefore = 8, kAfter };
  const std::int64_t lse = causal ? kOutside + 1 : kOutside;
  const BackendDims dims[] = {{of.batch, 1, of.length, of.depth},
                              {of.batch, 1, of.keys, of.depth},
                              {of.batch, 1, of.keys, of.width},
                              {of.batch, 1, of.length, of.width}};
  const BackendDims one = {1, 1, 1, 1}, scores = {of.batch, 1, of.length, of.keys};
  CudnnOperation made{.parts = {}, .tensor_cores = true};
  const auto tensor = [&](BackendDescriptor descriptor) -> const BackendDescriptor& {
    return made.parts.emplace_back(std::move(descriptor));
  };
  BackendDescriptor attention(kAttention);
  for (int i = 0; i < 4; ++i)
    attention.set(attribute(kAttentionOperands + i), tensor(backend_tensor(i + 1, dtype, dims[i])));
  if (keeps_lse)
    attention.set(attribute(kAttentionOperands + 4),
                  tensor(backend_tensor(lse, DType::f32, {of.batch, 1, of.length, 1})));
  attention.set(attribute(kAttentionOperands + 5),
                tensor(backend_tensor(kScale, DType::f32, one, BackendPlace::by_value)));
  if (causal) {
    const std::int64_t before = kBefore, after = kAfter;
    const cudnnPointwiseMode_t row_not_before_column = CUDNN_POINTWISE_CMP_GE;
    BackendDescriptor band(kBandMask), graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    band.set(kBandX, tensor(backend_tensor(before, DType::f32, scores, BackendPlace::within)));
    band.set(kBandY, tensor(backend_tensor(after, DType::f32, scores, BackendPlace::within)));
    band.set(kBandOutside,
             tensor(backend_tensor(kOutside, DType::f32, one, BackendPlace::by_value)));
    band.set(kBandKeeps, CUDNN_TYPE_POINTWISE_MODE, 1, &row_not_before_column);
    band.finalize();
    graph.set(CUDNN_ATTR_OPERATIONGRAPH_OPS, tensor(std::move(band)));
    graph.finalize();
    attention.set(kScoresGraph, tensor(std::move(graph)));
    attention.set(kScoresBefore, CUDNN_TYPE_INT64, 1, &before);
    attention.set(kScoresAfter, CUDNN_TYPE_INT64, 1, &after);
  }
  attention.finalize();
  made.parts.push_back(std::move(attention));
  return made;
}

}  // namespace ebb::cuda

#endif
