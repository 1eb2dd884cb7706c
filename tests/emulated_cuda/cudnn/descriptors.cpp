#include "ebb/tests/emulated_cuda/cudnn/descriptors.h"

#include "ebb/tests/emulated_cuda/queues/machine.h"

using namespace ebb::emulated;

namespace {

template <class T>
cudnnStatus_t create(T** made) {
  if (!made) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *made = new T;
  ++machine().library_objects;
  return CUDNN_STATUS_SUCCESS;
}
template <class T>
cudnnStatus_t destroy(T* made) {
  machine().library_objects -= made != nullptr;
  delete made;
  return CUDNN_STATUS_SUCCESS;
}
bool is_supported(cudnnDataType_t type) {
  if (type == CUDNN_DATA_BFLOAT16) return machine().cudnn >= 91300 && machine().capability >= 80;
  return type == CUDNN_DATA_FLOAT || type == CUDNN_DATA_DOUBLE || type == CUDNN_DATA_HALF;
}

}  // namespace

size_t cudnnGetVersion() { return static_cast<std::size_t>(machine().cudnn); }
const char* cudnnGetErrorString(cudnnStatus_t) { return "CUDNN_STATUS_..."; }

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return CUDNN_STATUS_NOT_INITIALIZED;
  if (const auto lock = machine().lock(); machine().injected(Fault::create_cudnn) != cudaSuccess)
    return CUDNN_STATUS_ALLOC_FAILED;
  constexpr std::size_t kBytes = std::size_t{10} << 20;  // as on an H100
  const cudnnStatus_t status = create(handle);
  if (status != CUDNN_STATUS_SUCCESS || (*handle)->memory.take(kBytes)) return status;
  static_cast<void>(destroy(*handle));
  return CUDNN_STATUS_ALLOC_FAILED;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  if (const auto lock = machine().lock();
      handle && handle->stream && !machine().is_stream(handle->stream))
    machine().complain("cudnnDestroy: the stream of the handle is gone");
  return destroy(handle);
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  if (!handle) return CUDNN_STATUS_NOT_INITIALIZED;
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateTensorDescriptor(cudnnTensorDescriptor_t* desc) { return create(desc); }
cudnnStatus_t cudnnDestroyTensorDescriptor(cudnnTensorDescriptor_t desc) { return destroy(desc); }
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t desc, cudnnDataType_t type,
                                         int rank, const int dims[], const int strides[]) {
  if (!desc || !dims || !strides) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (rank < 3) return CUDNN_STATUS_NOT_SUPPORTED;
  for (int i = 0; i < rank; ++i)
    if (dims[i] <= 0 || strides[i] <= 0) return CUDNN_STATUS_BAD_PARAM;
  desc->is_set = true;
  desc->type = type;
  desc->dims.assign(dims, dims + rank);
  desc->strides.assign(strides, strides + rank);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateDropoutDescriptor(cudnnDropoutDescriptor_t* desc) { return create(desc); }
cudnnStatus_t cudnnDestroyDropoutDescriptor(cudnnDropoutDescriptor_t desc) { return destroy(desc); }
// Dropout is not emulated: refuses any but 0.
cudnnStatus_t cudnnSetDropoutDescriptor(cudnnDropoutDescriptor_t desc, cudnnHandle_t handle,
                                        float dropout, void* states, size_t, unsigned long long) {
  if (!desc || !handle) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (dropout != 0 || states) return CUDNN_STATUS_NOT_SUPPORTED;
  desc->is_set = true;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDescriptor(cudnnRNNDescriptor_t* desc) { return create(desc); }
cudnnStatus_t cudnnDestroyRNNDescriptor(cudnnRNNDescriptor_t desc) { return destroy(desc); }
cudnnStatus_t cudnnSetRNNDescriptor_v8(cudnnRNNDescriptor_t desc, cudnnRNNAlgo_t algo,
                                       cudnnRNNMode_t, cudnnRNNBiasMode_t, cudnnDirectionMode_t,
                                       cudnnRNNInputMode_t, cudnnDataType_t type,
                                       cudnnDataType_t math_precision, cudnnMathType_t,
                                       int32_t input_size, int32_t hidden_size,
                                       int32_t projection_size, int32_t layers,
                                       cudnnDropoutDescriptor_t dropout, uint32_t) {
  if (!desc || !dropout) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (!dropout->is_set) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  if (input_size <= 0 || hidden_size <= 0 || layers <= 0) return CUDNN_STATUS_BAD_PARAM;
  // Refuses settings that the emulation does not compute.
  const bool is_small_h = algo == CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H;
  if (!is_supported(type) || math_precision != (is_half(type) ? CUDNN_DATA_FLOAT : type) ||
      projection_size != hidden_size || (algo != CUDNN_RNN_ALGO_STANDARD && !is_small_h) ||
      (is_small_h && type == CUDNN_DATA_DOUBLE))
    return CUDNN_STATUS_NOT_SUPPORTED;
  *desc = {true, type, input_size, hidden_size, layers, is_small_h};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnCreateRNNDataDescriptor(cudnnRNNDataDescriptor_t* desc) { return create(desc); }
cudnnStatus_t cudnnDestroyRNNDataDescriptor(cudnnRNNDataDescriptor_t desc) { return destroy(desc); }
cudnnStatus_t cudnnSetRNNDataDescriptor(cudnnRNNDataDescriptor_t desc, cudnnDataType_t type,
                                        cudnnRNNDataLayout_t, int steps, int batch, int vector_size,
                                        const int lengths[], void*) {
  if (!desc || !lengths) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (!is_supported(type)) return CUDNN_STATUS_NOT_SUPPORTED;
  if (steps <= 0 || batch <= 0 || vector_size <= 0) return CUDNN_STATUS_BAD_PARAM;
  for (int i = 0; i < batch; ++i)  // longer and shorter sequences are not emulated
    if (lengths[i] != steps) return CUDNN_STATUS_NOT_SUPPORTED;
  *desc = {true, type, steps, batch, vector_size};
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetRNNWeightSpaceSize(cudnnHandle_t handle, cudnnRNNDescriptor_t desc,
                                         size_t* bytes) {
  if (!handle || !desc || !bytes) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (!desc->is_set) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  *bytes = static_cast<std::size_t>(weight_elements(*desc)) * item_bytes(desc->type);
  return CUDNN_STATUS_SUCCESS;
}

// Leaves the descriptors of matrix and bias as they are: ebb reads the addresses alone.
cudnnStatus_t cudnnGetRNNWeightParams(cudnnHandle_t handle, cudnnRNNDescriptor_t desc,
                                      int32_t layer, size_t weight_bytes, const void* weights,
                                      int32_t linear, cudnnTensorDescriptor_t matrix_desc,
                                      void** matrix, cudnnTensorDescriptor_t bias_desc,
                                      void** bias) {
  if (!handle || !desc || !weights || !matrix_desc || !matrix || !bias_desc || !bias)
    return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (!desc->is_set) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  const std::size_t item = item_bytes(desc->type);
  if (layer < 0 || layer >= desc->layers || linear < 0 || linear > 7 ||
      weight_bytes < static_cast<std::size_t>(weight_elements(*desc)) * item)
    return CUDNN_STATUS_BAD_PARAM;
  const WeightPlaces places(*desc, layer);
  const bool of_input = linear < 4;
  const std::int64_t gate = linear % 4, hidden = desc->hidden;
  const std::int64_t width = of_input ? places.width : hidden;
  const auto at = [&](std::int64_t element) {
    return static_cast<char*>(const_cast<void*>(weights)) +
           static_cast<std::size_t>(element) * item;
  };
  *matrix = at((of_input ? places.input_matrix : places.hidden_matrix) + gate * hidden * width);
  *bias = at((of_input ? places.input_bias : places.hidden_bias) + gate * hidden);
  return CUDNN_STATUS_SUCCESS;
}
