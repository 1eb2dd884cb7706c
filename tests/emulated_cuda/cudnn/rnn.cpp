// cuDNN's calls for RNNs, with the checks that the library makes of its arguments.
#include <algorithm>

#include "ebb/tests/emulated_cuda/api/call.h"
#include "ebb/tests/emulated_cuda/cudnn/lstm.h"
#include "ebb/tests/emulated_cuda/memory/address_space.h"

namespace ebb::emulated {
namespace {

struct Call {
  LstmShape shape;
  std::size_t item = 4;
  std::vector<DevicePart> parts = {};
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;

  std::size_t bytes(std::int64_t elements) const {
    return static_cast<std::size_t>(elements) * item;
  }
  // Adds a part to be checked, unless it is null.
  void take(const void* address, std::int64_t elements, const char* what) {
    if (address) parts.push_back({address, bytes(elements), what});
  }
};

std::size_t workspace_needed(const LstmShape& shape, bool training) {
  const auto bytes = [&](std::int64_t elements) {
    return static_cast<std::size_t>(elements) * item_bytes(shape.rnn.type);
  };
  // Inference has no reserve: the emulation keeps its contents in the workspace.
  return std::max(
      bytes(shape.workspace_elements(machine().cudnn < 92600 ? 16 : 0)) + shape.fixed_workspace(),
      bytes(training ? 0 : shape.reserve_elements()));
}
std::size_t reserve_needed(const LstmShape& shape) {
  return static_cast<std::size_t>(shape.reserve_elements()) * item_bytes(shape.rnn.type) +
         LstmShape::kFixedReserve;
}

cudnnStatus_t describe_data(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& data,
                            std::int64_t width) {
  if (!data.is_set) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  if (data.type != rnn.type || data.width != width) return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
  return CUDNN_STATUS_SUCCESS;
}

LstmShape shape_of(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x) {
  return {rnn, x.steps, x.batch};
}

cudnnStatus_t describe(cudnnHandle_t handle, cudnnRNNDescriptor_t rnn, cudnnRNNDataDescriptor_t x,
                       cudnnRNNDataDescriptor_t y,
                       std::initializer_list<cudnnTensorDescriptor_t> states, Call& call) {
  if (!handle || !rnn || !x || !y) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (!rnn->is_set) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  for (const auto& [data, width] : {std::pair(x, rnn->in), std::pair(y, rnn->hidden)})
    if (const auto status = describe_data(*rnn, *data, width); status != CUDNN_STATUS_SUCCESS)
      return status;
  if (x->steps != y->steps || x->batch != y->batch) return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
  call.shape = shape_of(*rnn, *x);
  call.item = item_bytes(rnn->type);
  const std::vector<int> dims = {static_cast<int>(rnn->layers), static_cast<int>(x->batch),
                                 static_cast<int>(rnn->hidden)};
  const std::vector<int> strides = {dims[1] * dims[2], dims[2], 1};
  for (const cudnnTensorDescriptor_t state : states) {
    if (!state || !state->is_set) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    if (state->dims != dims || state->strides != strides || state->type != rnn->type)
      return CUDNN_STATUS_BAD_PARAM_SHAPE_MISMATCH;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t take_spaces(Call& call, bool training, std::size_t weight_bytes, const void* weights,
                          std::size_t workspace_bytes, void* workspace, std::size_t reserve_bytes,
                          void* reserve) {
  const std::int64_t elements = weight_elements(call.shape.rnn);
  if (!weights || (!workspace && workspace_needed(call.shape, training) > 0) ||
      (training && !reserve))
    return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (weight_bytes < call.bytes(elements) ||
      workspace_bytes < workspace_needed(call.shape, training) ||
      (training && reserve_bytes < reserve_needed(call.shape)))
    return CUDNN_STATUS_BAD_PARAM_SIZE_INSUFFICIENT;
  call.take(weights, elements, "cuDNN: weights");
  if (training) call.take(reserve, call.shape.reserve_elements(), "cuDNN: reserve");
  call.workspace = workspace;
  call.workspace_bytes = workspace_needed(call.shape, training);
  call.parts.push_back({workspace, call.workspace_bytes, "cuDNN: workspace"});
  return CUDNN_STATUS_SUCCESS;
}

// Puts function(shape, places) into the handle's stream.
cudnnStatus_t put(cudnnHandle_t handle, const char* name, Call call, const LstmPlaces<void>& places,
                  void (*function)(const LstmShape&, const LstmPlaces<void>&)) {
  for (const DevicePart& part : call.parts)
    if (part.bytes > 0 && !address_space().holds(part.address)) return CUDNN_STATUS_BAD_PARAM;
  auto run = [call, places, function]() -> Outcome {
    if (Outcome bad = check_parts(call.parts); !bad.ok()) return bad;
    auto* const scratch = static_cast<unsigned char*>(address_space().alias(call.workspace));
    // Contents of the workspace are undefined after a call: fills it with garbage.
    std::fill_n(scratch, call.workspace_bytes - call.shape.fixed_workspace(), 0xFF);
    function(call.shape, places);
    return {};
  };
  auto lock = machine().lock();
  ++machine().statistics.library_calls;
  if (const int wish = machine().injected(Fault::cudnn); wish != 0)
    return static_cast<cudnnStatus_t>(wish);
  const cudaError_t put =
      machine().put(lock, handle->stream, std::make_shared<FunctionWork>(name, run));
  return put == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}

}  // namespace
}  // namespace ebb::emulated

using namespace ebb::emulated;

cudnnStatus_t cudnnGetRNNTempSpaceSizes(cudnnHandle_t handle, cudnnRNNDescriptor_t desc,
                                        cudnnForwardMode_t mode, cudnnRNNDataDescriptor_t x,
                                        size_t* workspace_bytes, size_t* reserve_bytes) {
  if (!handle || !desc || !x) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (!desc->is_set) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  if (const auto status = describe_data(*desc, *x, desc->in); status != CUDNN_STATUS_SUCCESS)
    return status;
  if (desc->is_small_h && desc->hidden > 192) return CUDNN_STATUS_NOT_SUPPORTED;
  const bool training = mode == CUDNN_FWD_MODE_TRAINING;
  const LstmShape shape = shape_of(*desc, *x);
  if (workspace_bytes) *workspace_bytes = workspace_needed(shape, training);
  if (reserve_bytes) *reserve_bytes = training ? reserve_needed(shape) : 0;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnRNNForward(cudnnHandle_t handle, cudnnRNNDescriptor_t desc,
                              cudnnForwardMode_t mode, const int32_t[],
                              cudnnRNNDataDescriptor_t x_desc, const void* x,
                              cudnnRNNDataDescriptor_t y_desc, void* y,
                              cudnnTensorDescriptor_t h_desc, const void* hx, void* hy,
                              cudnnTensorDescriptor_t c_desc, const void* cx, void* cy,
                              size_t weight_bytes, const void* weights, size_t workspace_bytes,
                              void* workspace, size_t reserve_bytes, void* reserve) {
  Call call;
  if (const auto status = describe(handle, desc, x_desc, y_desc, {h_desc, c_desc}, call);
      status != CUDNN_STATUS_SUCCESS)
    return status;
  const bool training = mode == CUDNN_FWD_MODE_TRAINING;
  if (!x || !y) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  call.take(x, call.shape.rows() * desc->in, "cuDNN: x");
  call.take(y, call.shape.rows() * desc->hidden, "cuDNN: y");
  for (const void* state : {hx, cx, static_cast<const void*>(hy), static_cast<const void*>(cy)})
    call.take(state, call.shape.states(), "cuDNN: a state");
  if (const auto status = take_spaces(call, training, weight_bytes, weights, workspace_bytes,
                                      workspace, reserve_bytes, reserve);
      status != CUDNN_STATUS_SUCCESS)
    return status;
  // Inference has no reserve: its contents lie in the workspace.
  const LstmPlaces<void> places{.x = x,
                                .hx = hx,
                                .cx = cx,
                                .weights = weights,
                                .y = y,
                                .hy = hy,
                                .cy = cy,
                                .reserve = training ? reserve : workspace};
  return put(handle, "cudnnRNNForward", std::move(call), places, lstm_forward);
}

cudnnStatus_t cudnnRNNBackwardData_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t desc, const int32_t[],
    cudnnRNNDataDescriptor_t y_desc, const void* y, const void* dy, cudnnRNNDataDescriptor_t x_desc,
    void* dx, cudnnTensorDescriptor_t h_desc, const void* hx, const void* dhy, void* dhx,
    cudnnTensorDescriptor_t c_desc, const void* cx, const void* dcy, void* dcx, size_t weight_bytes,
    const void* weights, size_t workspace_bytes, void* workspace, size_t reserve_bytes,
    void* reserve) {
  Call call;
  if (const auto status = describe(handle, desc, x_desc, y_desc, {h_desc, c_desc}, call);
      status != CUDNN_STATUS_SUCCESS)
    return status;
  if (!y || !dy || !dx) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  call.take(y, call.shape.rows() * desc->hidden, "cuDNN: y");
  call.take(dy, call.shape.rows() * desc->hidden, "cuDNN: dy");
  call.take(dx, call.shape.rows() * desc->in, "cuDNN: dx");
  for (const void* state :
       {hx, dhy, static_cast<const void*>(dhx), cx, dcy, static_cast<const void*>(dcx)})
    call.take(state, call.shape.states(), "cuDNN: a state");
  if (const auto status = take_spaces(call, true, weight_bytes, weights, workspace_bytes, workspace,
                                      reserve_bytes, reserve);
      status != CUDNN_STATUS_SUCCESS)
    return status;
  const LstmPlaces<void> places{.hx = hx,
                                .cx = cx,
                                .weights = weights,
                                .dy = dy,
                                .dhy = dhy,
                                .dcy = dcy,
                                .dx = dx,
                                .dhx = dhx,
                                .dcx = dcx,
                                .reserve = reserve};
  return put(handle, "cudnnRNNBackwardData_v8", std::move(call), places, lstm_backward_data);
}

cudnnStatus_t cudnnRNNBackwardWeights_v8(
    cudnnHandle_t handle, cudnnRNNDescriptor_t desc, cudnnWgradMode_t, const int32_t[],
    cudnnRNNDataDescriptor_t x_desc, const void* x, cudnnTensorDescriptor_t h_desc, const void* hx,
    cudnnRNNDataDescriptor_t y_desc, const void* y, size_t weight_bytes, void* dweights,
    size_t workspace_bytes, void* workspace, size_t reserve_bytes, void* reserve) {
  Call call;
  if (const auto status = describe(handle, desc, x_desc, y_desc, {h_desc}, call);
      status != CUDNN_STATUS_SUCCESS)
    return status;
  if (!x || !y) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  call.take(x, call.shape.rows() * desc->in, "cuDNN: x");
  call.take(y, call.shape.rows() * desc->hidden, "cuDNN: y");
  call.take(hx, call.shape.states(), "cuDNN: a state");
  if (const auto status = take_spaces(call, true, weight_bytes, dweights, workspace_bytes,
                                      workspace, reserve_bytes, reserve);
      status != CUDNN_STATUS_SUCCESS)
    return status;
  const LstmPlaces<void> places{
      .x = x, .hx = hx, .y = const_cast<void*>(y), .dweights = dweights, .reserve = reserve};
  return put(handle, "cudnnRNNBackwardWeights_v8", std::move(call), places, lstm_backward_weights);
}
