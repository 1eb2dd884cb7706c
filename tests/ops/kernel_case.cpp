#include <algorithm>
#include <cstring>
#include <memory>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/tests/ops/harness.h"
#include "ebb/tests/ops/heap_count.h"

namespace ebb::tests {
namespace {

constexpr std::size_t kGuard = 256;
constexpr std::byte kGuardByte{0xA5};

// A buffer with guards around it, aligned as the allocator's are.
class Guarded {
 public:
  Guarded(std::size_t bytes, std::byte fill) : bytes_(bytes), memory_(bytes + 2 * kGuard + 64) {
    std::fill(memory_.begin(), memory_.end(), kGuardByte);
    void* start = memory_.data() + kGuard;
    std::size_t space = memory_.size() - kGuard;
    data_ = static_cast<std::byte*>(std::align(64, bytes_, start, space));
    std::fill(data_, data_ + bytes_, fill);
  }
  explicit Guarded(const Bytes& values) : Guarded(values.size(), kGuardByte) {
    if (bytes_) std::memcpy(data_, values.data(), bytes_);
  }
  std::byte* data() const noexcept { return bytes_ ? data_ : nullptr; }
  Bytes values() const { return Bytes(data_, data_ + bytes_); }
  bool stayed_inside() const {
    const auto is_guard = [](std::byte b) { return b == kGuardByte; };
    return std::all_of(memory_.data(), static_cast<const std::byte*>(data_), is_guard) &&
           std::all_of(static_cast<const std::byte*>(data_ + bytes_),
                       memory_.data() + memory_.size(), is_guard);
  }

 private:
  std::size_t bytes_;
  std::vector<std::byte> memory_;
  std::byte* data_;
};

}  // namespace

KernelCase::KernelCase(const Sample& sample, DType dtype, std::int64_t batch) {
  const RecordedSample recorded(sample, dtype, false, batch);
  const Node& node = recorded.node();
  op = node.op;
  attributes = node.attributes;
  const Tensors values = recorded.run(recorded.node_inputs(), make_inputs(sample, dtype, batch));
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    inputs.push_back({values[i].dtype(), values[i].shape()});
    input_values.push_back(bytes_of(values[i]));
  }
  Inference inference{*op, {inputs.data(), inputs.size()}, attributes, {}, outputs};
  op->infer(inference);
  for (Spec& output : outputs)
    if (output.shape.is_open())
      output.shape = Shape{static_cast<std::int64_t>(needs().reserve_bytes)};
}

MemoryNeeds KernelCase::needs(const IndexSet& destroyed, const IndexSet& unwanted) const {
  if (!op->cpu.memory) return {};
  return op->cpu.memory({.inputs = {inputs.data(), inputs.size()},
                         .outputs = {outputs.data(), outputs.size()},
                         .attributes = &attributes,
                         .destroyed = &destroyed,
                         .unwanted = &unwanted});
}

KernelCase::Run KernelCase::run(std::byte garbage, int alias, const IndexSet& unwanted,
                                const IndexSet& destroyed) const {
  std::vector<Guarded> in, out;
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool only_shape = needs_only_shape(*op, i, unwanted);
    in.emplace_back(only_shape ? Bytes() : input_values[i]);
    buffers.push_back({in.back().data(), inputs[i]});
  }
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool own = !(i == 0 && (alias >= 0 || !op->updates.empty())) && !unwanted.has(i);
    out.emplace_back(own ? outputs[i].bytes() : 0, garbage);
    buffers.push_back({unwanted.has(i) ? nullptr : out.back().data(), outputs[i]});
  }
  if (alias >= 0) buffers[inputs.size()].data = in[static_cast<std::size_t>(alias)].data();
  if (!op->updates.empty()) buffers[inputs.size()].data = in[0].data();
  const Guarded workspace(needs(destroyed, unwanted).workspace_bytes, garbage);

  detail::Ref<Prepared> prepared;
  if (op->cpu.prepare)
    prepared = op->cpu.prepare({.inputs = {inputs.data(), inputs.size()},
                                .outputs = {outputs.data(), outputs.size()},
                                .attributes = &attributes,
                                .destroyed = &destroyed,
                                .unwanted = &unwanted,
                                .allocator = &Device::cpu().runtime().allocator()});
  const KernelContext context{.inputs = {buffers.data(), inputs.size()},
                              .outputs = {buffers.data() + inputs.size(), outputs.size()},
                              .attributes = &attributes,
                              .workspace = workspace.data(),
                              .destroyed = &destroyed,
                              .prepared = prepared.get()};
  Run run;
  Status status;
  {
    const HeapCount count;
    status = op->cpu.run(context);
    run.allocations = count.allocations();
  }
  if (!status.ok()) throw Error(std::string("[") + op->name + "] " + status.problem);
  run.stayed_inside = workspace.stayed_inside();
  for (const Guarded& buffer : in) {
    run.inputs.push_back(buffer.values());
    run.stayed_inside = run.stayed_inside && buffer.stayed_inside();
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    run.stayed_inside = run.stayed_inside && out[i].stayed_inside();
    run.outputs.push_back(i == 0 && alias >= 0 ? run.inputs[static_cast<std::size_t>(alias)]
                                               : out[i].values());
  }
  return run;
}

}  // namespace ebb::tests
