// What cuDNN's descriptors hold.
#pragma once
#include <cudnn.h>

#include <vector>

struct cudnnContext {
  int device = 0;
  cudaStream_t stream = nullptr;
};
struct cudnnTensorStruct {
  bool is_set = false;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::vector<int> dims = {}, strides = {};
};
struct cudnnDropoutStruct {
  bool is_set = false;
  float probability = 0;
};
struct cudnnRNNStruct {
  bool is_set = false;
  cudnnRNNBiasMode_t bias = CUDNN_RNN_DOUBLE_BIAS;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  std::int64_t in = 0, hidden = 0, layers = 0;
  bool padded = false;
};
struct cudnnRNNDataStruct {
  bool is_set = false;
  cudnnDataType_t type = CUDNN_DATA_FLOAT;
  cudnnRNNDataLayout_t layout = CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
  std::int64_t steps = 0, batch = 0, width = 0;
  bool even = true;  // all sequences are as long
};

namespace ebb::emulated {

inline bool is_half(cudnnDataType_t type) {
  return type == CUDNN_DATA_HALF || type == CUDNN_DATA_BFLOAT16;
}
inline std::size_t item_bytes(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? 8 : is_half(type) ? 2 : 4;
}

// Where the weights of an LSTM lie in its space, in elements: first all matrices, layer by layer,
// then all biases. Gates are in cuDNN's order: input, forget, new, output.
struct WeightPlaces {
  explicit WeightPlaces(const cudnnRNNStruct& rnn) : rnn(rnn) {}
  std::int64_t width(std::int64_t layer) const { return layer == 0 ? rnn.in : rnn.hidden; }
  std::int64_t input_matrix(std::int64_t layer) const {
    const std::int64_t above = 4 * rnn.hidden * 2 * rnn.hidden;
    return layer == 0 ? 0 : 4 * rnn.hidden * (rnn.in + rnn.hidden) + (layer - 1) * above;
  }
  std::int64_t hidden_matrix(std::int64_t layer) const {
    return input_matrix(layer) + 4 * rnn.hidden * width(layer);
  }
  bool has_input_bias() const {
    return rnn.bias == CUDNN_RNN_DOUBLE_BIAS || rnn.bias == CUDNN_RNN_SINGLE_INP_BIAS;
  }
  bool has_hidden_bias() const {
    return rnn.bias == CUDNN_RNN_DOUBLE_BIAS || rnn.bias == CUDNN_RNN_SINGLE_REC_BIAS;
  }
  std::int64_t input_bias(std::int64_t layer) const {
    return input_matrix(rnn.layers) + layer * biases() * 4 * rnn.hidden;
  }
  std::int64_t hidden_bias(std::int64_t layer) const {
    return input_bias(layer) + (has_input_bias() ? 4 * rnn.hidden : 0);
  }
  std::int64_t elements() const { return input_bias(rnn.layers); }

  const cudnnRNNStruct& rnn;

 private:
  std::int64_t biases() const { return int{has_input_bias()} + int{has_hidden_bias()}; }
};

}  // namespace ebb::emulated
