#include "ebb/core/tensor/launch_row.h"

#include <utility>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/tensor/detect_nan.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

bool sets_all(const OpDef& op, const TensorImpl& target) noexcept {
  return op.overwrites && target.offset == 0 && target.spec.bytes() == target.storage->bytes();
}

void mark_updated(const OpDef& op, Inputs inputs) noexcept {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (op.updates.has(i)) inputs[i].tensor->impl()->storage->bump_version();
  if (const TensorImpl& target = *inputs[0].tensor->impl(); sets_all(op, target))
    target.storage->mend();
}

void tear_updated(const OpDef& op, Inputs inputs) noexcept {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (op.updates.has(i)) inputs[i].tensor->impl()->storage->tear(op.name);
}

void LaunchRow::add(Runtime& runtime, const OpDef& op, const Launch& launch, Inputs inputs,
                    const Tensors& results, Ref<Storage> workspace, Ref<Prepared> prepared,
                    CallSite site) {
  if (runtime_ != &runtime) flush();
  runtime_ = &runtime;
  auto entry = std::make_unique<Entry>();
  const KernelContext& context = launch.context;
  entry->op = &op;
  entry->buffers.reserve(context.inputs.size() + context.outputs.size());
  for (const std::span<const Buffer> part : {context.inputs, context.outputs})
    for (const Buffer& buffer : part) entry->buffers.push_back(buffer);
  entry->attributes = *context.attributes;
  if (context.destroyed) entry->destroyed = *context.destroyed;
  entry->tensors.reserve(inputs.size() + results.size());
  for (const Input& input : inputs) {
    entry->tensors.push_back(*input.tensor);
    entry->inputs.emplace_back(entry->tensors.back());
  }
  for (const Tensor& result : results) entry->tensors.push_back(result);
  entry->workspace = std::move(workspace);
  entry->prepared = std::move(prepared);
  entry->site = site;
  Launch kept = launch;
  kept.context.inputs = {entry->buffers.data(), context.inputs.size()};
  kept.context.outputs = {entry->buffers.data() + context.inputs.size(), context.outputs.size()};
  kept.context.attributes = &entry->attributes;
  kept.context.destroyed = &entry->destroyed;
  if (launches_.size() == launches_.capacity()) launches_.reserve(2 * launches_.size() + 8);
  entries_.push_back(std::move(entry));
  launches_.push_back(kept);
}

// `begun` counts those that may have written.
void LaunchRow::run(Runtime& runtime, std::span<const Launch> launches, const Entries& entries,
                    std::size_t& begun) {
  const Unwanted unwanted = runtime.is_simulated() ? Unwanted::nothing : tape_mode().detects;
  const std::size_t at_once = unwanted == Unwanted::nothing ? launches.size() : 1;
  while (begun < launches.size()) {
    Stream* const stream = launches[begun].context.stream;
    const Launched launched = runtime.run(stream, launches.subspan(begun, at_once));
    begun += launched.count;
    if (!launched.status.ok()) {
      const Entry& failed = *entries[begun];
      if (!launched.status.refused) ++begun;
      throw Error(message(failed.op->name, describe(launched.status), failed.site));
    }
    if (unwanted == Unwanted::nothing) continue;
    const std::string found = find_unwanted(launches[begun - 1].context, unwanted, runtime, stream);
    const Entry& last = *entries[begun - 1];
    if (!found.empty()) throw NotANumber(message(last.op->name, found, last.site));
  }
}

void LaunchRow::flush() {
  if (launches_.empty()) return;
  const Entries entries = std::exchange(entries_, {});
  const std::vector<Launch> launches = std::exchange(launches_, {});
  const auto let_go = [&]() noexcept {
    for (std::size_t i = 0; i < entries.size(); ++i)
      for (const Input& input : entries[i]->inputs)
        if (const TensorImpl& impl = *input.tensor->impl(); impl.storage)
          impl.storage->used_on(launches[i].context.stream);
  };
  std::size_t begun = 0;
  try {
    run(*runtime_, launches, entries, begun);
  } catch (...) {
    let_go();
    for (std::size_t i = 0; i < begun; ++i) tear_updated(*entries[i]->op, inputs_of(*entries[i]));
    throw;
  }
  let_go();
  for (const auto& entry : entries) mark_updated(*entry->op, inputs_of(*entry));
}

}  // namespace ebb::detail
