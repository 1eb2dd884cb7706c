#include "ebb/core/tensor/launch_row.h"

#include <algorithm>
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

namespace {
// Makes room for `more` elements: adding them cannot fail then.
template <class T>
void make_room(std::vector<T>& in, std::size_t more) {
  constexpr std::size_t kAtFirst = 64;  // enough for most steps
  const std::size_t wanted = in.size() + more;
  if (wanted > in.capacity()) in.reserve(std::max(2 * wanted, kAtFirst));
}
}  // namespace

void LaunchRow::add(Runtime& runtime, const OpDef& op, const Launch& launch, Inputs inputs,
                    const Tensors& results, Ref<Storage> workspace, Ref<Prepared> prepared,
                    CallSite site) {
  if (runtime_ != &runtime) flush();
  runtime_ = &runtime;
  const KernelContext& context = launch.context;
  Update update{&op,
                *context.attributes,
                context.destroyed ? *context.destroyed : IndexSet(),
                buffers_.size(),
                inputs_.size(),
                std::move(workspace),
                std::move(prepared),
                site};
  make_room(updates_, 1);
  make_room(launches_, 1);
  make_room(buffers_, context.inputs.size() + context.outputs.size());
  make_room(inputs_, inputs.size());
  make_room(tensors_, inputs.size());
  if (results.size() > 1) make_room(results_, results.size() - 1);
  for (const std::span<const Buffer> part : {context.inputs, context.outputs})
    buffers_.insert(buffers_.end(), part.begin(), part.end());
  inputs_.insert(inputs_.end(), inputs.begin(), inputs.end());
  for (const Input& input : inputs) tensors_.push_back(*input.tensor);
  for (std::size_t i = 1; i < results.size(); ++i) results_.push_back(results[i]);
  launches_.push_back(launch);
  updates_.push_back(std::move(update));
}

void LaunchRow::bind() noexcept {
  for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i].tensor = &tensors_[i];
  for (std::size_t i = 0; i < updates_.size(); ++i) {
    KernelContext& context = launches_[i].context;
    const Buffer* const buffers = buffers_.data() + updates_[i].first_buffer;
    context.inputs = {buffers, context.inputs.size()};
    context.outputs = {buffers + context.inputs.size(), context.outputs.size()};
    context.attributes = &updates_[i].attributes;
    context.destroyed = &updates_[i].destroyed;
  }
}

// `begun` counts launches that may have written.
void LaunchRow::run(std::size_t& begun) {
  const NanCheck check = runtime_->is_simulated() ? NanCheck::none : tape_mode().nan_check;
  const std::span<const Launch> launches = launches_;
  while (begun < launches.size()) {
    const std::size_t count = check == NanCheck::none ? launches.size() - begun : 1;
    Stream* const stream = launches[begun].context.stream;
    const Launched launched = runtime_->run(stream, launches.subspan(begun, count));
    begun += launched.count;
    if (!launched.status.ok()) {
      const Update& failed = updates_[begun];
      if (!launched.status.refused) ++begun;
      throw Error(message(failed.op->name, describe(launched.status), failed.site));
    }
    if (check == NanCheck::none) continue;
    const Update& last = updates_[begun - 1];
    const std::string found = find_nan(launches[begun - 1].context, check, *runtime_, stream);
    if (!found.empty()) throw NotANumber(message(last.op->name, found, last.site));
  }
}

void LaunchRow::flush() {
  if (updates_.empty()) return;
  struct Emptied {
    ~Emptied() {
      for (std::size_t i = 0; i < row.updates_.size(); ++i)
        for (const Input& input : row.inputs_of(i))
          if (const TensorImpl& impl = *input.tensor->impl(); impl.storage)
            impl.storage->used_on(row.launches_[i].context.stream);
      row.updates_.clear();
      row.launches_.clear();
      row.buffers_.clear();
      row.inputs_.clear();
      row.tensors_.clear();
      row.results_.clear();
    }
    LaunchRow& row;
  } const emptied{*this};
  bind();
  std::size_t begun = 0;
  try {
    run(begun);
  } catch (...) {
    for (std::size_t i = 0; i < begun; ++i) tear_updated(*updates_[i].op, inputs_of(i));
    throw;
  }
  for (std::size_t i = 0; i < updates_.size(); ++i) mark_updated(*updates_[i].op, inputs_of(i));
}

}  // namespace ebb::detail
