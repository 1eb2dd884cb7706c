// cuDNN's backend interface, for convolutions of images and attention. It refuses what cuDNN 9.19
// was seen to refuse, with the same answers, and descriptors of another type or double ids at once.
#include <algorithm>
#include <cstring>
#include <memory>

#include "ebb/tests/emulated_cuda/api/call.h"
#include "ebb/tests/emulated_cuda/cudnn/backend.h"
#include "ebb/tests/emulated_cuda/memory/address_space.h"

namespace ebb::emulated {
namespace {

// A handle owns a share of the contents, which other descriptors share once they are final.
struct Handle {
  BackendPtr contents;
};
Backend& contents_of(cudnnBackendDescriptor_t desc) {
  return *static_cast<Handle*>(desc)->contents;
}

std::size_t value_bytes(int type) {
  if (type == CUDNN_TYPE_BOOLEAN) return 1;
  return type == CUDNN_TYPE_DATA_TYPE || type == CUDNN_TYPE_POINTWISE_MODE ||
                 type == CUDNN_TYPE_CONVOLUTION_MODE || type == CUDNN_TYPE_HEUR_MODE ||
                 type == CUDNN_TYPE_NUMERICAL_NOTE
             ? 4
             : 8;
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
