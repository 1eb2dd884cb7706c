#include <algorithm>
#include <utility>

#include "ebb/core/base/error.h"
#include "ebb/core/tensor/kernel_of.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/ops/harness.h"
#include "ebb/tests/ops/heap_count.h"

namespace ebb::tests {
namespace {

constexpr std::size_t kGuard = 256;
constexpr std::byte kGuardByte{0xA5};

Runtime& runtime() { return Device::cpu().runtime(); }
const DeviceKernel& kernel_of(const OpDef& op) { return ebb::kernel_of(op, runtime()); }

// A buffer of the device with guards around it, aligned as the allocator's are; all of it is copied
// at once, since each copy to the host waits for the device.
class Guarded {
 public:
  struct Content {
    Bytes values;
    bool stayed_inside;
  };

  Guarded(std::size_t bytes, std::byte fill) : Guarded(bytes) {
    runtime().fill(stream(), block_->data(), std::to_integer<unsigned char>(kGuardByte), size());
    runtime().fill(stream(), at(kGuard), std::to_integer<unsigned char>(fill), bytes_);
  }
  explicit Guarded(const Bytes& values) : Guarded(values.size()) {
    Bytes all(size(), kGuardByte);
    std::ranges::copy(values, all.begin() + kGuard);
    runtime().copy_in(stream(), at(0), all.data(), all.size());
  }
  ~Guarded() {
    if (block_) runtime().allocator().free(block_, stream());
  }
  Guarded(Guarded&& other) noexcept
      : bytes_(other.bytes_), block_(std::exchange(other.block_, nullptr)) {}
  Guarded& operator=(Guarded&&) = delete;

  std::byte* data() const noexcept { return bytes_ ? at(kGuard) : nullptr; }
  Content content() const {
    const Bytes all = read(0, size());
    const auto begin = all.begin() + kGuard, end = all.end() - kGuard;
    return {Bytes(begin, end), are_guards(all.begin(), begin) && are_guards(end, all.end())};
  }
  // The same of what may be large, and whose values nobody wants.
  bool stayed_inside() const {
    const Bytes before = read(0, kGuard), behind = read(kGuard + bytes_, kGuard);
    return are_guards(before.begin(), before.end()) && are_guards(behind.begin(), behind.end());
  }

 private:
  explicit Guarded(std::size_t bytes)
      : bytes_(bytes), block_(runtime().allocator().allocate({.bytes = size()})) {}

  static Stream* stream() { return runtime().stream(); }
  static bool are_guards(Bytes::const_iterator begin, Bytes::const_iterator end) {
    return std::all_of(begin, end, [](std::byte b) { return b == kGuardByte; });
  }
  std::size_t size() const noexcept { return bytes_ + 2 * kGuard; }
  std::byte* at(std::size_t offset) const noexcept {
    return static_cast<std::byte*>(block_->data()) + offset;
  }
  Bytes read(std::size_t offset, std::size_t bytes) const {
    Bytes values(bytes);
    runtime().copy_out(stream(), values.data(), at(offset), bytes);
    return values;
  }

  const std::size_t bytes_;
  memory::Block* block_;
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
  const MemoryRule rule = kernel_of(*op).memory;
  if (!rule) return {};
  return rule({.inputs = {inputs.data(), inputs.size()},
               .outputs = {outputs.data(), outputs.size()},
               .attributes = &attributes,
               .destroyed = &destroyed,
               .unwanted = &unwanted,
               .profile = &runtime().profile()});
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

  const DeviceKernel& kernel = kernel_of(*op);
  detail::Ref<Prepared> prepared;
  if (kernel.prepare)
    prepared = kernel.prepare({.inputs = {inputs.data(), inputs.size()},
                               .outputs = {outputs.data(), outputs.size()},
                               .attributes = &attributes,
                               .destroyed = &destroyed,
                               .unwanted = &unwanted,
                               .profile = &runtime().profile(),
                               .allocator = &runtime().allocator(),
                               .stream = runtime().stream()});
  const KernelContext context{.inputs = {buffers.data(), inputs.size()},
                              .outputs = {buffers.data() + inputs.size(), outputs.size()},
                              .attributes = &attributes,
                              .workspace = workspace.data(),
                              .destroyed = &destroyed,
                              .prepared = prepared.get(),
                              .stream = runtime().stream()};
  Run run;
  Status status;
  {
    const Launch launch{.run = kernel.run, .context = context, .name = op->name};
    const HeapCount count;
    status = runtime().run(runtime().stream(), {&launch, 1}).status;
    if (on_host()) run.allocations = count.allocations();
  }
  if (!status.ok()) throw Error(std::string("[") + op->name + "] " + status.problem);
  run.stayed_inside = workspace.stayed_inside();
  const auto read = [&](const Guarded& buffer) {
    Guarded::Content content = buffer.content();
    run.stayed_inside = run.stayed_inside && content.stayed_inside;
    return std::move(content.values);
  };
  for (const Guarded& buffer : in) run.inputs.push_back(read(buffer));
  for (std::size_t i = 0; i < out.size(); ++i) {
    Bytes values = read(out[i]);
    run.outputs.push_back(i == 0 && alias >= 0 ? run.inputs[static_cast<std::size_t>(alias)]
                                               : std::move(values));
  }
  return run;
}

}  // namespace ebb::tests
