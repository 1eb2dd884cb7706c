// What descriptors must be like, and the engines that there are for an operation.
#include <algorithm>
#include <set>
#include <span>

#include "ebb/tests/emulated_cuda/cudnn/backend.h"
#include "ebb/tests/emulated_cuda/queues/machine.h"

namespace ebb::emulated {
namespace {

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

}  // namespace

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

}  // namespace ebb::emulated
