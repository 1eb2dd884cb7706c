// cuDNN's backend interface, for convolutions of images and attention. It refuses what cuDNN 9.19
// was seen to refuse, with the same answers, and descriptors of another type or double ids at once.
#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>

#include "ebb/tests/emulated_cuda/api/call.h"
#include "ebb/tests/emulated_cuda/cudnn/operation.h"
#include "ebb/tests/emulated_cuda/memory/address_space.h"

namespace ebb::emulated {
namespace {

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

// A handle owns a share of the contents, which other descriptors share once they are final.
struct Handle {
  BackendPtr contents;
};
Backend& contents_of(cudnnBackendDescriptor_t desc) {
  return *static_cast<Handle*>(desc)->contents;
}

// An attribute that a descriptor has, and how many values of it. `of`: for a descriptor, its type.
struct Rule {
  int descriptor, name, type;
  std::int64_t least, most;
  bool is_needed = true;
  int of = 0;
};
constexpr Rule kRules[] = {
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, 1},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, 4},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, 4},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, 1,
     false},
    {CUDNN_BACKEND_TENSOR_DESCRIPTOR, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, 1,
     false},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1,
     1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
     1, 1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_CONV_MODE,
     CUDNN_TYPE_CONVOLUTION_MODE, 1, 1},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2,
     2},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64,
     2, 2},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2,
     2},
    {CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64,
     2, 2},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
     1, 1, false},
    {CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, CUDNN_ATTR_OPERATIONGRAPH_OPS,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true, -1},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR},
    {CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, 1, 1},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
     1, 1},
    {CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG,
     CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, 1,
     64},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
     CUDNN_TYPE_VOID_PTR, 1, 64},
    {CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
     1, 1, false},
};
// Attention without a mask, or with a causal one: a band of the scores in a graph of its own. Since
// cuDNN 9.13 and 9.21.
constexpr int kAttention = CUDNN_BACKEND_OPERATION_SDPA_FWD_DESCRIPTOR,
              kBand = CUDNN_BACKEND_OPERATION_DIAGONAL_BAND_MASK_DESCRIPTOR,
              kAttentionOperands = CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC,
              kScoresGraph = CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH,
              kBefore = CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_INPUT_UID,
              kAfter = CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_OUTPUT_UID,
              kBandX = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC,
              kBandOutside = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_BDESC,
              kBandY = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_YDESC,
              kBandKeeps = CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_COMPARISON_MODE;
constexpr int kLse = 4;  // among its operands
constexpr Rule kAttentionRules[] = {
    {kAttention, kScoresGraph, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, false,
     CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR},
    {kAttention, kBefore, CUDNN_TYPE_INT64, 1, 1, false},
    {kAttention, kAfter, CUDNN_TYPE_INT64, 1, 1, false},
    {kBand, kBandX, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true, CUDNN_BACKEND_TENSOR_DESCRIPTOR},
    {kBand, kBandOutside, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true,
     CUDNN_BACKEND_TENSOR_DESCRIPTOR},
    {kBand, kBandY, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true, CUDNN_BACKEND_TENSOR_DESCRIPTOR},
    {kBand, kBandKeeps, CUDNN_TYPE_POINTWISE_MODE, 1, 1},
};
// Those of the three operations, by their distance from ..._ALPHA. Each has the same, in one order.
enum { kAlpha, kBeta, kConvolution, kWeights, kX, kY };
constexpr Rule kOperationRules[] = {
    {0, kAlpha, CUDNN_TYPE_DOUBLE, 1, 1},
    {0, kBeta, CUDNN_TYPE_DOUBLE, 1, 1},
    {0, kConvolution, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true,
     CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR},
    {0, kWeights, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true, CUDNN_BACKEND_TENSOR_DESCRIPTOR},
    {0, kX, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true, CUDNN_BACKEND_TENSOR_DESCRIPTOR},
    {0, kY, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, true, CUDNN_BACKEND_TENSOR_DESCRIPTOR},
};
// The number of ..._ALPHA of an operation; 0 for other descriptors.
int first_name(int type) {
  switch (type) {
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR:
      return CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR:
      return CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA;
    case CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR:
      return CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA;
    default:
      return 0;
  }
}
std::vector<Rule> rules_of(int type) {
  std::vector<Rule> rules;
  if (const int first = first_name(type); first != 0)
    for (Rule rule : kOperationRules) {
      rule.name += first;
      rules.push_back(rule);
    }
  for (int i = 0; type == kAttention && i < 6; ++i)
    rules.push_back({type, kAttentionOperands + i, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, 1, i != kLse,
                     CUDNN_BACKEND_TENSOR_DESCRIPTOR});
  for (const std::span<const Rule> all :
       {std::span<const Rule>(kRules), std::span<const Rule>(kAttentionRules)})
    for (const Rule& rule : all)
      if (rule.descriptor == type) rules.push_back(rule);
  return rules;
}

std::size_t value_bytes(int type) {
  if (type == CUDNN_TYPE_BOOLEAN) return 1;
  return type == CUDNN_TYPE_DATA_TYPE || type == CUDNN_TYPE_POINTWISE_MODE ||
                 type == CUDNN_TYPE_CONVOLUTION_MODE || type == CUDNN_TYPE_HEUR_MODE ||
                 type == CUDNN_TYPE_NUMERICAL_NOTE
             ? 4
             : 8;
}

constexpr unsigned bit(cudnnBackendNumericalNote_t note) { return 1U << note; }
constexpr unsigned kTensorCore = bit(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
// In the heuristics' order, with those first that a caller who wants the same bits, sums in float
// or a bounded workspace must pass over.
constexpr BackendEngine kEngines[] = {
    {20, bit(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC), BackendEngine::nothing},
    {41, kTensorCore | bit(CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION),
     BackendEngine::copies},
    {43, kTensorCore, BackendEngine::four_copies},
    {62, kTensorCore, BackendEngine::copies, true},
    {22, kTensorCore, BackendEngine::copies_and_parts},
    {28, 0, BackendEngine::little},
};
constexpr BackendEngine kFallback[] = {
    {1, 0, BackendEngine::nothing, true},
    {0, bit(CUDNN_NUMERICAL_NOTE_STRICT_NAN_PROP), BackendEngine::nothing},
};

constexpr BackendEngine kAttentionEngines[] = {
    {9, kTensorCore, BackendEngine::page},
    {8, kTensorCore, BackendEngine::nothing},
};

BackendTensor tensor_of(const Backend& from) {
  BackendTensor tensor{from.one<std::int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID),
                       from.one<std::int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT),
                       from.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)};
  std::ranges::copy(from.all<std::int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS), tensor.dims.begin());
  std::ranges::copy(from.all<std::int64_t>(CUDNN_ATTR_TENSOR_STRIDES), tensor.strides.begin());
  tensor.is_virtual = from.has(CUDNN_ATTR_TENSOR_IS_VIRTUAL);
  tensor.is_by_value = from.has(CUDNN_ATTR_TENSOR_IS_BY_VALUE);
  return tensor;
}

cudnnStatus_t check_tensor(const Backend& desc) {
  const BackendTensor tensor = tensor_of(desc);
  const bool is_power = tensor.alignment > 0 && (tensor.alignment & (tensor.alignment - 1)) == 0;
  if (!is_power || tensor.alignment % static_cast<std::int64_t>(item_bytes(tensor.type)) != 0)
    return CUDNN_STATUS_BAD_PARAM;
  for (std::size_t i = 0; i < 4; ++i)
    if (tensor.dims[i] <= 0 || tensor.strides[i] <= 0) return CUDNN_STATUS_BAD_PARAM;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_convolution(const Backend& desc) {
  if (desc.one<std::int64_t>(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS) != 2 ||
      desc.one<cudnnDataType_t>(CUDNN_ATTR_CONVOLUTION_COMP_TYPE) != CUDNN_DATA_FLOAT ||
      desc.one<cudnnConvolutionMode_t>(CUDNN_ATTR_CONVOLUTION_CONV_MODE) != CUDNN_CROSS_CORRELATION)
    return CUDNN_STATUS_NOT_SUPPORTED;
  for (const int name : {CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES})
    for (const std::int64_t value : desc.all<std::int64_t>(name))
      if (value < 1) return CUDNN_STATUS_BAD_PARAM;
  for (const int name : {CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS})
    for (const std::int64_t value : desc.all<std::int64_t>(name))
      if (value < 0) return CUDNN_STATUS_BAD_PARAM;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_operation(Backend& desc, int first) {
  ConvOperation& of = desc.operation.emplace<ConvOperation>();
  of.pass = static_cast<ConvOperation::Pass>(
      desc.type - CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
  of.alpha = desc.one<double>(first + kAlpha);
  of.beta = desc.one<double>(first + kBeta);
  const Backend& shape = desc.descriptor(first + kConvolution);
  const auto pair = [&](int name, std::array<std::int64_t, 2>& to) {
    std::ranges::copy(shape.all<std::int64_t>(name), to.begin());
  };
  pair(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, of.before);
  pair(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, of.after);
  pair(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, of.stride);
  pair(CUDNN_ATTR_CONVOLUTION_DILATIONS, of.dilation);
  of.weights = tensor_of(desc.descriptor(first + kWeights));
  of.x = tensor_of(desc.descriptor(first + kX));
  of.y = tensor_of(desc.descriptor(first + kY));
  const auto &x = of.x.dims, &w = of.weights.dims, &y = of.y.dims;
  if (std::set{of.x.id, of.weights.id, of.y.id}.size() != 3)
    return CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES;
  if (of.x.type != of.y.type || of.x.type != of.weights.type || x[0] != y[0] || w[0] != y[1] ||
      x[1] % w[1] != 0 || w[0] % (x[1] / w[1]) != 0)
    return CUDNN_STATUS_BAD_PARAM;
  for (std::size_t side = 0; side < 2; ++side) {
    const std::int64_t room =
        x[2 + side] + of.before[side] + of.after[side] - of.dilation[side] * (w[2 + side] - 1) - 1;
    if (room < 0 || room / of.stride[side] + 1 != y[2 + side]) return CUDNN_STATUS_BAD_PARAM;
  }
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t check_attention(Backend& desc) {
  AttentionOperation& of = desc.operation.emplace<AttentionOperation>();
  of.causal = desc.has(kScoresGraph);
  of.keeps_lse = desc.has(kAttentionOperands + kLse);
  if (machine().cudnn < (of.causal ? 92100 : 91301)) return CUDNN_STATUS_NOT_SUPPORTED;
  for (int i = 0; i < 6; ++i)
    if (desc.has(kAttentionOperands + i))
      of.operands[static_cast<std::size_t>(i)] = tensor_of(desc.descriptor(kAttentionOperands + i));
  const auto& [q, k, v, y, lse, scale, outside] = of.operands;
  if (of.causal) {
    const auto* band = std::get_if<AttentionOperation>(&desc.descriptor(kScoresGraph).operation);
    if (!band || !desc.has(kBefore) || !desc.has(kAfter) ||
        band->operands[0].id != desc.one<std::int64_t>(kBefore) ||
        band->operands[1].id != desc.one<std::int64_t>(kAfter) ||
        band->operands[0].dims != std::array{q.dims[0], q.dims[1], q.dims[2], k.dims[2]})
      return CUDNN_STATUS_BAD_PARAM;
    of.operands[6] = band->operands[6];
  }
  const auto is = [](const BackendTensor& tensor, std::array<std::int64_t, 4> dims) {
    return tensor.dims == dims;
  };
  std::set<std::int64_t> ids;
  for (const BackendTensor& tensor : of.operands) {
    if (tensor.id == 0) continue;
    if (!ids.insert(tensor.id).second) return CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES;
    const bool is_value = &tensor == &scale || &tensor == &outside;
    if (tensor.is_by_value != is_value || tensor.is_virtual ||
        tensor.type != (is_value || &tensor == &lse ? CUDNN_DATA_FLOAT : q.type))
      return CUDNN_STATUS_BAD_PARAM;
  }
  return is(k, {q.dims[0], q.dims[1], v.dims[2], q.dims[3]}) &&
                 is(v, {q.dims[0], q.dims[1], k.dims[2], v.dims[3]}) &&
                 is(y, {q.dims[0], q.dims[1], q.dims[2], v.dims[3]}) &&
                 (!of.keeps_lse || is(lse, {q.dims[0], q.dims[1], q.dims[2], 1})) &&
                 is(scale, {1, 1, 1, 1})
             ? CUDNN_STATUS_SUCCESS
             : CUDNN_STATUS_BAD_PARAM;
}

// Kept as attention whose operands are the scores before and after, and what is outside.
cudnnStatus_t check_band(Backend& desc) {
  AttentionOperation& of = desc.operation.emplace<AttentionOperation>();
  of.operands[0] = tensor_of(desc.descriptor(kBandX));
  of.operands[1] = tensor_of(desc.descriptor(kBandY));
  of.operands[6] = tensor_of(desc.descriptor(kBandOutside));
  const bool is_possible = of.operands[0].is_virtual && of.operands[1].is_virtual &&
                           of.operands[0].dims == of.operands[1].dims &&
                           desc.one<cudnnPointwiseMode_t>(kBandKeeps) == CUDNN_POINTWISE_CMP_GE;
  return is_possible ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_BAD_PARAM;
}

bool is_operation(int type) { return first_name(type) != 0 || type == kAttention || type == kBand; }

void find_engines(Backend& desc) {
  const BackendTensor first = desc.operation.operands()[0];
  const cudnnDataType_t type = first.type;
  const int capability = machine().capability;
  if (const auto* of = std::get_if<AttentionOperation>(&desc.operation)) {
    const bool is_taken = is_half(type) && capability >= 80 && first.dims[3] % 8 == 0 &&
                          of->operands[2].dims[3] % 8 == 0 && first.dims[3] <= 256;
    for (const BackendEngine& engine : kAttentionEngines)
      if (is_taken && (engine.needs != BackendEngine::page || capability == 90))
        desc.found.push_back(&engine);
    return;
  }
  if (type == CUDNN_DATA_DOUBLE || (type == CUDNN_DATA_BFLOAT16 && capability < 80)) return;
  const bool has_cores = is_half(type) || capability >= 80;
  const bool is_first =
      desc.one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_A;
  for (const BackendEngine& engine : is_first ? std::span<const BackendEngine>(kEngines)
                                              : std::span<const BackendEngine>(kFallback))
    if (has_cores || !engine.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE)) desc.found.push_back(&engine);
}

cudnnStatus_t finalize(Backend& desc) {
  switch (static_cast<int>(desc.type)) {
    case CUDNN_BACKEND_TENSOR_DESCRIPTOR:
      return check_tensor(desc);
    case CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR:
      return check_convolution(desc);
    case CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR:
      desc.operation = desc.descriptor(CUDNN_ATTR_OPERATIONGRAPH_OPS).operation;
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR:
      if (!desc.descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)
               .has(CUDNN_ATTR_OPERATIONGRAPH_HANDLE))
        return CUDNN_STATUS_BAD_PARAM;
      desc.operation = desc.descriptor(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH).operation;
      find_engines(desc);
      return CUDNN_STATUS_SUCCESS;
    case CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR: {
      const Backend& config = desc.descriptor(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG);
      desc.operation = config.operation;
      desc.engine = config.engine;
      return desc.engine->is_refused ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_SUCCESS;
    }
    case CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR: {
      const auto ids = desc.all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
      if (std::set(ids.begin(), ids.end()).size() != ids.size())
        return CUDNN_STATUS_BAD_PARAM_DUPLICATED_ENTRIES;
      return ids.size() == desc.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS).size()
                 ? CUDNN_STATUS_SUCCESS
                 : CUDNN_STATUS_BAD_PARAM;
    }
    case kAttention:
      return check_attention(desc);
    case kBand:
      return check_band(desc);
    default:
      if (const int first = first_name(desc.type); first != 0) return check_operation(desc, first);
      return CUDNN_STATUS_BAD_PARAM;  // made by the library alone
  }
}

// Fills a descriptor of the caller's with an engine config, or with a config's engine.
cudnnStatus_t fill(cudnnBackendDescriptor_t to, cudnnBackendDescriptorType_t type,
                   const BackendOperation& of, const BackendEngine* engine) {
  if (!to) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  Backend& desc = contents_of(to);
  if (desc.type != type || desc.is_final) return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
  desc.operation = of;
  desc.engine = engine;
  desc.is_final = true;
  return CUDNN_STATUS_SUCCESS;
}

// Writes as many of the values as are asked for. `values` null: counts them.
template <class T>
cudnnStatus_t tell(const std::vector<T>& all, std::int64_t requested, std::int64_t* count,
                   void* values) {
  const auto wanted = std::min<std::size_t>(all.size(), static_cast<std::size_t>(requested));
  if (wanted > 0 && !values) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (wanted > 0) std::memcpy(values, all.data(), wanted * sizeof(T));
  if (count) *count = static_cast<std::int64_t>(requested == 0 ? all.size() : wanted);
  return CUDNN_STATUS_SUCCESS;
}

}  // namespace
}  // namespace ebb::emulated

using namespace ebb::emulated;

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* desc) {
  if (!desc) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  *desc = new Handle{std::make_shared<Backend>(Backend{type})};
  ++machine().library_objects;
  return CUDNN_STATUS_SUCCESS;
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t desc) {
  machine().library_objects -= desc != nullptr;
  delete static_cast<Handle*>(desc);
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t desc,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* values) {
  if (!desc || !values) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  Backend& of = contents_of(desc);
  if (of.is_final) return CUDNN_STATUS_BAD_PARAM;
  const std::vector<Rule> rules = rules_of(of.type);
  const auto rule = std::ranges::find(rules, static_cast<int>(name), &Rule::name);
  if (rule == rules.end()) return CUDNN_STATUS_BAD_PARAM;
  if (rule->type != type) return CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE;
  if (count < rule->least || count > rule->most) return CUDNN_STATUS_BAD_PARAM;
  Attribute attribute{type, count, {}, {}};
  const auto* const bytes = static_cast<const unsigned char*>(values);
  attribute.bytes.assign(bytes, bytes + static_cast<std::size_t>(count) * value_bytes(type));
  if (type == CUDNN_TYPE_HANDLE && !*static_cast<const cudnnHandle_t*>(values))
    return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
    auto* const handle = *static_cast<Handle* const*>(values);
    if (!handle) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    const Backend& inner = *handle->contents;
    if (rule->of == -1 ? !is_operation(inner.type) : inner.type != rule->of)
      return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
    if (!inner.is_final) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
    attribute.descriptors.push_back(handle->contents);
  }
  of.attributes.insert_or_assign(name, std::move(attribute));
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t desc) {
  if (!desc) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  Backend& of = contents_of(desc);
  if (of.is_final) return CUDNN_STATUS_BAD_PARAM;
  for (const Rule& rule : rules_of(of.type))
    if (rule.is_needed && !of.has(rule.name)) return CUDNN_STATUS_BAD_PARAM;
  const cudnnStatus_t status = finalize(of);
  of.is_final = status == CUDNN_STATUS_SUCCESS;
  return status;
}

cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t desc,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested,
                                       int64_t* count, void* values) {
  if (!desc) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  const Backend& of = contents_of(desc);
  if (!of.is_final) return CUDNN_STATUS_NOT_INITIALIZED;
  const auto is = [&](int attribute, int value_type) {
    return name == attribute && type == value_type;
  };
  auto* const to = static_cast<cudnnBackendDescriptor_t*>(values);
  if (is(CUDNN_ATTR_ENGINEHEUR_RESULTS, CUDNN_TYPE_BACKEND_DESCRIPTOR)) {
    const auto found = static_cast<std::int64_t>(of.found.size());
    const std::int64_t wanted = std::min(found, requested);
    for (std::int64_t i = 0; i < wanted; ++i)
      if (const auto status = fill(to[i], CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, of.operation,
                                   of.found[static_cast<std::size_t>(i)]);
          status != CUDNN_STATUS_SUCCESS)
        return status;
    if (count) *count = requested == 0 ? found : wanted;
    return CUDNN_STATUS_SUCCESS;
  }
  if (!of.engine) return CUDNN_STATUS_NOT_SUPPORTED;
  if (is(CUDNN_ATTR_ENGINECFG_ENGINE, CUDNN_TYPE_BACKEND_DESCRIPTOR)) {
    if (count) *count = 1;
    return requested != 1 || !to
               ? CUDNN_STATUS_BAD_PARAM
               : fill(to[0], CUDNN_BACKEND_ENGINE_DESCRIPTOR, of.operation, of.engine);
  }
  if (is(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, CUDNN_TYPE_INT64))
    return tell(std::vector{of.engine->number}, requested, count, values);
  if (is(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, CUDNN_TYPE_INT64))
    return tell(std::vector{of.engine->workspace_bytes(of.operation)}, requested, count, values);
  if (!is(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE))
    return CUDNN_STATUS_NOT_SUPPORTED;
  std::vector<cudnnBackendNumericalNote_t> notes;
  for (int note = 0; note < CUDNN_NUMERICAL_NOTE_TYPE_COUNT; ++note)
    if (of.engine->has(static_cast<cudnnBackendNumericalNote_t>(note)))
      notes.push_back(static_cast<cudnnBackendNumericalNote_t>(note));
  return tell(notes, requested, count, values);
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t pack) {
  if (!handle || !plan || !pack) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  const Backend &how = contents_of(plan), &with = contents_of(pack);
  if (how.type != CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR ||
      with.type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)
    return CUDNN_STATUS_BAD_PARAM_DESCRIPTOR_TYPE;
  if (!how.is_final || !with.is_final) return CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED;
  const BackendOperation of = how.operation;
  const BackendEngine engine = *how.engine;
  const auto ids = with.all<std::int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
  const auto pointers = with.all<void*>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
  std::vector<DevicePart> parts;
  std::vector<void*> operands;
  for (const BackendTensor& tensor : of.operands()) {
    if (tensor.id == 0) {
      operands.push_back(nullptr);
      continue;
    }
    const auto at = std::ranges::find(ids, tensor.id);
    if (at == ids.end()) return CUDNN_STATUS_BAD_PARAM;
    void* const address = pointers[static_cast<std::size_t>(at - ids.begin())];
    if (!address) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
    if (reinterpret_cast<std::uintptr_t>(address) % static_cast<std::uintptr_t>(tensor.alignment))
      return CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER;
    operands.push_back(address);
    if (!tensor.is_by_value) parts.push_back({address, tensor.bytes(), "cuDNN: an operand"});
  }
  const auto bytes = static_cast<std::size_t>(engine.workspace_bytes(of));
  const auto workspaces = with.all<void*>(CUDNN_ATTR_VARIANT_PACK_WORKSPACE);
  void* const workspace = workspaces.empty() ? nullptr : workspaces[0];
  if (bytes > 0 && !workspace) return CUDNN_STATUS_BAD_PARAM_NULL_POINTER;
  if (reinterpret_cast<std::uintptr_t>(workspace) % 128) return CUDNN_STATUS_BAD_PARAM;
  if (bytes > 0) parts.push_back({workspace, bytes, "cuDNN: workspace"});
  for (const DevicePart& part : parts)
    if (!address_space().holds(part.address)) return CUDNN_STATUS_BAD_PARAM;
  // Values are read in the call.
  std::vector<float> values;
  for (const BackendTensor& tensor : of.operands())
    values.push_back(tensor.is_by_value ? *static_cast<float*>(operands[values.size()]) : 0);
  auto run = [=]() mutable -> Outcome {
    if (Outcome bad = check_parts(parts); !bad.ok()) return bad;
    const auto alias = [](const void* address) { return address_space().alias(address); };
    // Contents of the workspace are undefined after a call: fills it with garbage.
    if (bytes > 0) std::memset(alias(workspace), 0xFF, bytes);
    const auto tensors = of.operands();
    for (std::size_t i = 0; i < tensors.size(); ++i)
      if (operands[i] && !tensors[i].is_by_value)
        operands[i] = alias(operands[i]);
      else if (operands[i])
        operands[i] = &values[i];
    compute(of, engine, operands);
    return {};
  };
  auto lock = machine().lock();
  ++machine().statistics.library_calls;
  if (const int wish = machine().injected(Fault::cudnn); wish != 0)
    return static_cast<cudnnStatus_t>(wish);
  const cudaError_t put = machine().put(lock, handle->stream,
                                        std::make_shared<FunctionWork>("cudnnBackendExecute", run));
  return put == cudaSuccess ? CUDNN_STATUS_SUCCESS : CUDNN_STATUS_EXECUTION_FAILED;
}
