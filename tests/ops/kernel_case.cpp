#include <algorithm>
#include <utility>

#include "ebb/core/base/error.h"
#include "ebb/core/tensor/kernel_of.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/heap.h"
#include "ebb/tests/ops/harness.h"

namespace ebb::tests {
namespace {

constexpr std::size_t kGuard = 256;
constexpr std::byte kGuardByte{0xA5};

Runtime& runtime() { return Device::cpu().runtime(); }
const DeviceKernel& kernel_of(const OpDef& op) { return ebb::kernel_of(op, runtime()); }

// Device buffers in one block, each between guards and aligned as the allocator aligns. One block
// means one copy to the host, since each copy waits for the device.
class GuardedBuffers {
 public:
  // Holds `values`, followed by scratch of `scratch_bytes` filled with `garbage`.
  GuardedBuffers(const std::vector<Bytes>& values, std::size_t scratch_bytes, std::byte garbage)
      : scratch_bytes_(scratch_bytes) {
    Bytes image(kGuard, kGuardByte);
    for (const Bytes& of : values) {
      offsets_.push_back(image.size());
      sizes_.push_back(of.size());
      image.insert(image.end(), of.begin(), of.end());
      image.resize(round_up(image.size()) + kGuard, kGuardByte);
    }
    scratch_ = image.size();
    block_ = runtime().allocator().allocate({.bytes = round_up(scratch_ + scratch_bytes) + kGuard});
    runtime().copy_in(stream(), at(0), image.data(), image.size());
    runtime().fill(stream(), at(scratch_), std::to_integer<unsigned char>(kGuardByte),
                   round_up(scratch_bytes) + kGuard);
    runtime().fill(stream(), at(scratch_), std::to_integer<unsigned char>(garbage), scratch_bytes);
  }
  ~GuardedBuffers() { runtime().allocator().free(block_, stream()); }
  GuardedBuffers(const GuardedBuffers&) = delete;
  GuardedBuffers& operator=(const GuardedBuffers&) = delete;

  std::byte* data(std::size_t i) const noexcept { return sizes_[i] ? at(offsets_[i]) : nullptr; }
  std::byte* scratch() const noexcept { return scratch_bytes_ ? at(scratch_) : nullptr; }

  struct Content {
    std::vector<Bytes> values;
    bool stayed_inside = true;
  };
  Content content() const {
    Content content;
    const Bytes image = read(0, scratch_);
    std::size_t guard = 0;  // start of the guard before the next buffer
    const auto pass_guard = [&](const Bytes& of, std::size_t end) {
      for (; guard < end; ++guard) content.stayed_inside &= of[guard] == kGuardByte;
    };
    for (std::size_t i = 0; i < offsets_.size(); ++i) {
      pass_guard(image, offsets_[i]);
      guard = offsets_[i] + sizes_[i];
      const auto begin = image.begin() + static_cast<std::ptrdiff_t>(offsets_[i]);
      content.values.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(sizes_[i]));
    }
    pass_guard(image, scratch_);
    const std::size_t end = scratch_ + scratch_bytes_;
    const Bytes behind = read(end, round_up(scratch_bytes_) + kGuard - scratch_bytes_);
    guard = 0;
    pass_guard(behind, behind.size());
    return content;
  }

 private:
  static constexpr std::size_t round_up(std::size_t bytes) {
    return (bytes + kGuard - 1) / kGuard * kGuard;
  }
  static Stream* stream() { return runtime().stream(); }
  std::byte* at(std::size_t offset) const noexcept {
    return static_cast<std::byte*>(block_->data()) + offset;
  }
  Bytes read(std::size_t offset, std::size_t bytes) const {
    Bytes values(bytes);
    runtime().copy_out(stream(), values.data(), at(offset), bytes);
    return values;
  }

  std::vector<std::size_t> offsets_, sizes_;
  std::size_t scratch_ = 0, scratch_bytes_;
  memory::Block* block_ = nullptr;
};

}  // namespace

KernelCase::KernelCase(const Sample& sample, DType dtype, std::int64_t batch) {
  const RecordedSample recorded(sample, dtype, false, batch);
  const Node& node = recorded.node();
  op = node.op;
  attributes = node.attributes;
  const Tensors values = recorded.node_values(make_inputs(sample, dtype, batch));
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
  std::vector<Bytes> values;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    values.push_back(needs_only_shape(*op, i, unwanted) ? Bytes() : input_values[i]);
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool own = !(i == 0 && (alias >= 0 || !op->updates.empty())) && !unwanted.has(i);
    values.emplace_back(own ? outputs[i].bytes() : 0, garbage);
  }
  const GuardedBuffers memory(values, needs(destroyed, unwanted).workspace_bytes, garbage);
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < values.size(); ++i)
    buffers.push_back({memory.data(i), i < inputs.size() ? inputs[i] : outputs[i - inputs.size()]});
  if (alias >= 0) buffers[inputs.size()].data = memory.data(static_cast<std::size_t>(alias));
  if (!op->updates.empty()) buffers[inputs.size()].data = memory.data(0);

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
                              .workspace = memory.scratch(),
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
  GuardedBuffers::Content content = memory.content();
  run.stayed_inside = content.stayed_inside;
  const auto first_output = content.values.begin() + static_cast<std::ptrdiff_t>(inputs.size());
  run.inputs.assign(content.values.begin(), first_output);
  run.outputs.assign(first_output, content.values.end());
  if (alias >= 0) run.outputs[0] = run.inputs[static_cast<std::size_t>(alias)];
  return run;
}

}  // namespace ebb::tests
