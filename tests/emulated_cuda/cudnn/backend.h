// What a descriptor of cuDNN's backend interface holds, may hold, and must.
#pragma once
#include <cstring>
#include <map>
#include <memory>

#include "ebb/tests/emulated_cuda/cudnn/operation.h"

namespace ebb::emulated {

struct Backend;
using BackendPtr = std::shared_ptr<Backend>;

struct Attribute {
  cudnnBackendAttributeType_t type;
  std::int64_t count;
  std::vector<unsigned char> bytes;
  std::vector<BackendPtr> descriptors;
};

struct Backend {
  cudnnBackendDescriptorType_t type;
  bool is_final = false;
  std::map<int, Attribute> attributes = {};
  BackendOperation operation = {};               // from the operation on
  const BackendEngine* engine = nullptr;         // from the engine config on
  std::vector<const BackendEngine*> found = {};  // by the heuristics

  template <class T>
  std::vector<T> all(int name) const {
    std::vector<T> values;
    if (const auto at = attributes.find(name); at != attributes.end()) {
      values.resize(static_cast<std::size_t>(at->second.count));
      std::memcpy(values.data(), at->second.bytes.data(), at->second.bytes.size());
    }
    return values;
  }
  template <class T>
  T one(int name) const {
    return all<T>(name).at(0);
  }
  const Backend& descriptor(int name) const { return *attributes.at(name).descriptors.at(0); }
  bool has(int name) const { return attributes.count(name) > 0; }
};

// An attribute that a descriptor has, and how many values of it. `of`: for a descriptor, its type.
struct Rule {
  int descriptor, name, type;
  std::int64_t least, most;
  bool is_needed = true;
  int of = 0;
};
std::vector<Rule> rules_of(int type);

// The number of ..._ALPHA of an operation; 0 for other descriptors. The others follow it.
int first_name(int type);
enum { kAlpha, kBeta, kConvolution, kWeights, kX, kY };

// Attention without a mask, or with a causal one: a band of the scores in a graph of its own. Since
// cuDNN 9.13 and 9.21.
inline constexpr int kAttention = CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR,
                     kBand = CUDNN_BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR,
                     kAttentionOperands = CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC,
                     kScoresGraph = CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH,
                     kBefore = CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_INPUT_UID,
                     kAfter = CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_OUTPUT_UID,
                     kBandX = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC,
                     kBandOutside = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_BDESC,
                     kBandY = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_YDESC,
                     kBandKeeps = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_COMPARISON_MODE;
inline constexpr int kLse = 4;  // among its operands
inline bool is_operation(int type) {
  return first_name(type) != 0 || type == kAttention || type == kBand;
}

// Checks a descriptor that has all that it needs, and adds what it is made of.
cudnnStatus_t finalize(Backend& desc);

}  // namespace ebb::emulated
