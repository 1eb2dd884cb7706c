#include "ebb/kernels/cpu/in_float.h"

#include <algorithm>
#include <new>
#include <type_traits>
#include <vector>

#include "ebb/core/kernels/carver.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/vector_half.h"

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

template <class From, class To>
void convert_all(const Buffer& from, const Buffer& to) {
  const From* in = from.as<const From>();
  To* out = to.as<To>();
  for_pieces(from.elements(), kPieceElements, [=](std::int64_t begin, std::int64_t end) {
    convert_run(in + begin, out + begin, end - begin);
  });
}

void widen(const Buffer& from, const Buffer& to) {
  from.spec.dtype == DType::bf16 ? convert_all<BFloat16, float>(from, to)
                                 : convert_all<Float16, float>(from, to);
}

void narrow(const Buffer& from, const Buffer& to) {
  to.spec.dtype == DType::bf16 ? convert_all<float, BFloat16>(from, to)
                               : convert_all<float, Float16>(from, to);
}

}  // namespace

MemoryNeeds in_float_memory(const MemoryQuery& query, MemoryRule rule, ReadsInput reads) {
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
  Carver carver(nullptr);  // in the same order as in_float()
  carver.take<Buffer>(static_cast<std::int64_t>(inputs.size() + outputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (is_half(query.inputs[i].dtype) && (reads == nullptr || reads(i, unwanted)))
      carver.take<float>(inputs[i].shape.elements());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (is_half(query.outputs[i].dtype) && !unwanted.has(i))
      carver.take<float>(outputs[i].shape.elements());
  needs.workspace_bytes += carver.bytes();
  return needs;
}

// The operands that the kernel sees are stored in the workspace, so that they need no allocation.
Status in_float(const KernelContext& context, Kernel kernel, ReadsInput reads) {
  static_assert(std::is_trivially_destructible_v<Buffer>);
  const std::span<const Buffer> inputs = context.inputs, outputs = context.outputs;
  IndexSet unwanted;
  if (reads != nullptr)
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
    const bool is_read = reads == nullptr || reads(i, unwanted);
    const Buffer& widened = put(inputs[i], i, is_read);
    if (is_read && is_half(inputs[i].spec.dtype)) widen(inputs[i], widened);
  }
  for (std::size_t i = 0; i < outputs.size(); ++i)
    put(outputs[i], inputs.size() + i, outputs[i].data != nullptr);

  KernelContext of_float = context;
  of_float.inputs = {all, inputs.size()};
  of_float.outputs = {all + inputs.size(), outputs.size()};
  of_float.workspace = static_cast<std::byte*>(context.workspace) + carver.bytes();
  const Status status = kernel(of_float);
  if (!status.ok()) return status;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (is_half(outputs[i].spec.dtype) && outputs[i].data != nullptr)
      narrow(of_float.outputs[i], outputs[i]);
  return {};
}

}  // namespace ebb::cpu
