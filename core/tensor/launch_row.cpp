#include "ebb/core/tensor/launch_row.h"

#include <utility>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

void LaunchRow::add(Runtime& runtime, const Launch& launch, Inputs inputs, CallSite site) {
  if (runtime_ != &runtime) flush();
  runtime_ = &runtime;
  auto entry = std::make_unique<Entry>();
  const KernelContext& context = launch.context;
  entry->buffers.assign(context.inputs.begin(), context.inputs.end());
  entry->buffers.insert(entry->buffers.end(), context.outputs.begin(), context.outputs.end());
  entry->attributes = *context.attributes;
  for (const Input& input : inputs) entry->inputs.push_back(*input.tensor);
  entry->site = site;
  entry->launch = launch;
  KernelContext& kept = entry->launch.context;
  kept.inputs = {entry->buffers.data(), context.inputs.size()};
  kept.outputs = {entry->buffers.data() + context.inputs.size(), context.outputs.size()};
  kept.attributes = &entry->attributes;
  kept.destroyed = nullptr;
  entries_.push_back(std::move(entry));
  has_waited_ = true;
}

void LaunchRow::flush() {
  if (entries_.empty()) return;
  const auto entries = std::exchange(entries_, {});
  std::vector<Launch> launches;
  for (const auto& entry : entries) launches.push_back(entry->launch);
  const Launched launched = runtime_->run(launches[0].context.stream, launches);
  for (const auto& entry : entries)
    for (const Tensor& input : entry->inputs)
      if (const TensorImpl& impl = *input.impl(); impl.storage)
        impl.storage->used_on(entry->launch.context.stream);
  has_done_ = has_done_ || launched.count > 0 || !launched.status.refused;
  if (launched.status.ok()) return;
  const Entry& failed = *entries[launched.count];
  throw Error(message(failed.launch.name, describe(launched.status), failed.site));
}

}  // namespace ebb::detail
