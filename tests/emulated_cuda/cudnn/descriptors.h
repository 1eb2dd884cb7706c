// Contents of cuDNN's descriptors.
#pragma once
#include <cudnn.h>

#include <vector>

#include "ebb/tests/emulated_cuda/memory/address_space.h"

struct cudnnContext {
  cudaStream_t stream = nullptr;
  ebb::emulated::OwnMemory memory = {};
};
struct cudnnTensorStruct {
  bool is_set = false;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int> dims = {}, strides = {};
};
struct cudnnDropoutStruct {
  bool is_set = false;
};
struct cudnnRNNStruct {
  bool is_set = false;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::int64_t in = 0, hidden = 0, layers = 1;
  bool is_small_h = false;  // CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H
};
struct cudnnRNNDataStruct {
  bool is_set = false;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::int64_t steps = 0, batch = 0, width = 0;
};

namespace ebb::emulated {

inline bool is_half(cudnnDataType_t type) {
  return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
}
inline std::size_t item_bytes(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? 8 : is_half(type) ? 2 : 4;
}

// Offsets of a layer's weights in the weight space, in elements, and the end of that layer's. Gates
// are in cuDNN's order: input, forget, new, output.
struct WeightPlaces {
  WeightPlaces(const cudnnRNNStruct& rnn, std::int64_t layer)
      : width(layer == 0 ? rnn.in : rnn.hidden),
        input_matrix(layer == 0 ? 0 : WeightPlaces(rnn, layer - 1).end),
        hidden_matrix(input_matrix + 4 * rnn.hidden * width),
        input_bias(hidden_matrix + 4 * rnn.hidden * rnn.hidden),
        hidden_bias(input_bias + 4 * rnn.hidden),
        end(hidden_bias + 4 * rnn.hidden) {}
  const std::int64_t width, input_matrix, hidden_matrix, input_bias, hidden_bias, end;
};
inline std::int64_t weight_elements(const cudnnRNNStruct& rnn) {
  return WeightPlaces(rnn, rnn.layers - 1).end;
}

}  // namespace ebb::emulated
