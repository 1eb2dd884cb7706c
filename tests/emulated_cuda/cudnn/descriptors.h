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
  std::int64_t in = 0, hidden = 0;
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

// Offsets of a layer's weights in its weight space, in elements. Gates are in cuDNN's order: input,
// forget, new, output.
struct WeightPlaces {
  explicit WeightPlaces(const cudnnRNNStruct& rnn)
      : hidden_matrix(4 * rnn.hidden * rnn.in),
        input_bias(hidden_matrix + 4 * rnn.hidden * rnn.hidden),
        hidden_bias(input_bias + 4 * rnn.hidden),
        elements(hidden_bias + 4 * rnn.hidden) {}
  static constexpr std::int64_t input_matrix = 0;
  const std::int64_t hidden_matrix, input_bias, hidden_bias, elements;
};

}  // namespace ebb::emulated
