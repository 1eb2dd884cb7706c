#include "ebb/core/kernels/in_float.h"

#include <algorithm>
#include <new>
#include <type_traits>
#include <vector>

#include "ebb/core/kernels/carver.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/pointwise.h"

namespace ebb::cpu {
namespace {

Spec as_float(Spec spec) noexcept {
  if (is_half(spec.dtype)) spec.dtype = DType::f32;
  return spec;
}

std::vector<Spec> as_float(std::span<const Spec> specs) {
  std::vector<Spec> floats;
  for (const Spec& spec : specs) floats.push_back(as_float(spec));
  return floats;
}

Status convert(const Buffer& from, const Buffer& to) {
  return cast({.inputs = {&from, 1}, .outputs = {&to, 1}});
}

}  // namespace

MemoryNeeds detail::memory_in_float(const MemoryQuery& query, MemoryRule rule,
                                    IsShapeOnly is_shape_only) {
  const auto has_half = [](const Spec& spec) { return is_half(spec.dtype); };
  if (std::none_of(query.inputs.begin(), query.inputs.end(), has_half))
    return rule != nullptr ? rule(query) : MemoryNeeds();
  const std::vector<Spec> inputs = as_float(query.inputs), outputs = as_float(query.outputs);
  MemoryQuery of_float = query;
  of_float.inputs = {inputs.data(), inputs.size()};
  of_float.outputs = {outputs.data(), outputs.size()};
  MemoryNeeds needs = rule != nullptr ? rule(of_float) : MemoryNeeds();

  const IndexSet none;
  const IndexSet& unwanted = query.unwanted != nullptr ? *query.unwanted : none;
  Carver carver(nullptr);  // in the same order as run_in_float()
  carver.take<Buffer>(static_cast<std::int64_t>(inputs.size() + outputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (is_half(query.inputs[i].dtype) && !(is_shape_only && is_shape_only(i, unwanted)))
      carver.take<float>(inputs[i].shape.elements());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (is_half(query.outputs[i].dtype) && !unwanted.has(i))
      carver.take<float>(outputs[i].shape.elements());
  needs.workspace_bytes += carver.bytes();
  return needs;
}

// The operands that the kernel sees are stored in the workspace, so that they need no allocation.
Status detail::run_in_float(const KernelContext& context, Kernel kernel,
                            IsShapeOnly is_shape_only) {
  static_assert(std::is_trivially_destructible_v<Buffer>);
  const std::span<const Buffer> inputs = context.inputs, outputs = context.outputs;
  const auto has_half = [](const Buffer& buffer) { return is_half(buffer.spec.dtype); };
  if (std::none_of(inputs.begin(), inputs.end(), has_half)) return kernel(context);
  IndexSet unwanted;
  if (is_shape_only != nullptr)
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if (outputs[i].data == nullptr) unwanted.insert(i);

  Carver carver(context.workspace);
  Buffer* const all =
      carver.take<Buffer>(static_cast<std::int64_t>(inputs.size() + outputs.size()));
  const auto put = [&](const Buffer& of, std::size_t at, bool is_used) -> const Buffer& {
    Buffer* const buffer = new (all + at) Buffer(of);
    if (!is_half(of.spec.dtype)) return *buffer;
    buffer->spec = as_float(of.spec);
    buffer->data = is_used ? carver.take<float>(of.elements()) : nullptr;
    return *buffer;
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_read = !(is_shape_only && is_shape_only(i, unwanted));
    const Buffer& widened = put(inputs[i], i, is_read);
    if (!is_read || !is_half(inputs[i].spec.dtype)) continue;
    if (const Status status = convert(inputs[i], widened); !status.ok()) return status;
  }
  for (std::size_t i = 0; i < outputs.size(); ++i)
    put(outputs[i], inputs.size() + i, outputs[i].data != nullptr);

  KernelContext of_float = context;
  of_float.inputs = {all, inputs.size()};
  of_float.outputs = {all + inputs.size(), outputs.size()};
  of_float.workspace = static_cast<std::byte*>(context.workspace) + carver.bytes();
  Status status = kernel(of_float);
  for (std::size_t i = 0; i < outputs.size() && status.ok(); ++i)
    if (is_half(outputs[i].spec.dtype) && outputs[i].data != nullptr)
      status = convert(of_float.outputs[i], outputs[i]);
  return status;
}

}  // namespace ebb::cpu
