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

namespace {
const TensorImpl& impl_of(const Tensor& tensor) noexcept { return *tensor.impl(); }
const TensorImpl& impl_of(const Input& input) noexcept { return *input.tensor->impl(); }

// Makes room for `more` elements: adding them cannot fail then.
template <class T>
void make_room(std::vector<T>& in, std::size_t more) {
  const std::size_t wanted = in.size() + more;
  if (wanted > in.capacity()) in.reserve(2 * wanted);
}
}  // namespace

template <class T>
void mark_updated(const OpDef& op, std::span<const T> inputs) noexcept {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (op.updates.has(i)) impl_of(inputs[i]).storage->bump_version();
  if (const TensorImpl& target = impl_of(inputs[0]); sets_all(op, target)) target.storage->mend();
}

template <class T>
void tear_updated(const OpDef& op, std::span<const T> inputs) noexcept {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (op.updates.has(i)) impl_of(inputs[i]).storage->tear(op.name);
}

template void mark_updated(const OpDef&, Inputs) noexcept;
template void tear_updated(const OpDef&, Inputs) noexcept;

LaunchRow::Kept* LaunchRow::spare() noexcept {
  thread_local constinit bool is_over = false;
  struct Spare {
    ~Spare() { is_over = true; }
    Kept kept;
  };
  thread_local Spare spare;
  return is_over ? nullptr : &spare.kept;
}

LaunchRow::LaunchRow(Kind kind) noexcept : kind_(kind) {
  tape_mode().row = this;
  if (Kept* const kept = spare()) kept_ = std::move(*kept);
}

LaunchRow::~LaunchRow() {
  constexpr std::size_t kMostSpare = 8192;  // buffers: all vectors have about 1 MiB then
  kept_.clear();
  if (kept_.buffers.capacity() > kMostSpare) return;
  if (Kept* const kept = spare()) *kept = std::move(kept_);
}

void LaunchRow::Kept::clear() noexcept {
  updates.clear();
  launches.clear();
  buffers.clear();
  tensors.clear();
}

void LaunchRow::add(Runtime& runtime, const OpDef& op, const Launch& launch, Inputs inputs,
                    const Tensors& results, Ref<Storage> workspace, Ref<Prepared> prepared,
                    CallSite site) {
  if (runtime_ != &runtime) flush();
  runtime_ = &runtime;
  const KernelContext& context = launch.context;
  Update update{&op,
                *context.attributes,
                context.destroyed ? *context.destroyed : IndexSet(),
                kept_.buffers.size(),
                kept_.tensors.size(),
                std::move(workspace),
                std::move(prepared),
                site};
  make_room(kept_.updates, 1);
  make_room(kept_.launches, 1);
  make_room(kept_.buffers, context.inputs.size() + context.outputs.size());
  make_room(kept_.tensors, inputs.size() + results.size());
  for (const std::span<const Buffer> part : {context.inputs, context.outputs})
    kept_.buffers.insert(kept_.buffers.end(), part.begin(), part.end());
  for (const Input& input : inputs) kept_.tensors.push_back(*input.tensor);
  for (std::size_t i = 1; i < results.size(); ++i) kept_.tensors.push_back(results[i]);
  kept_.launches.push_back(launch);
  kept_.updates.push_back(std::move(update));
}

void LaunchRow::bind() noexcept {
  for (std::size_t i = 0; i < kept_.updates.size(); ++i) {
    KernelContext& context = kept_.launches[i].context;
    const Buffer* const buffers = kept_.buffers.data() + kept_.updates[i].first_buffer;
    context.inputs = {buffers, context.inputs.size()};
    context.outputs = {buffers + context.inputs.size(), context.outputs.size()};
    context.attributes = &kept_.updates[i].attributes;
    context.destroyed = &kept_.updates[i].destroyed;
  }
}

// `begun` counts launches that may have written.
void LaunchRow::run(std::size_t& begun) {
  const NanCheck check = nan_check_on(*runtime_);
  const std::span<const Launch> launches = kept_.launches;
  while (begun < launches.size()) {
    const std::size_t count = check == NanCheck::none ? launches.size() - begun : 1;
    Stream* const stream = launches[begun].context.stream;
    const Launched launched = runtime_->run(stream, launches.subspan(begun, count));
    begun += launched.count;
    if (!launched.status.ok()) {
      const Update& failed = kept_.updates[begun];
      if (!launched.status.refused) ++begun;
      refuse(failed.op->name, describe(launched.status), failed.site);
    }
    if (check == NanCheck::none) continue;
    const Update& last = kept_.updates[begun - 1];
    const std::string found =
        find_nan(launches[begun - 1].context, check, *runtime_, stream, last.site);
    if (!found.empty()) refuse<NotANumber>(last.op->name, found, last.site);
  }
}

void LaunchRow::flush() {
  if (kept_.updates.empty()) return;
  struct Emptied {
    ~Emptied() {
      for (std::size_t i = 0; i < row.kept_.updates.size(); ++i)
        for (const Tensor& input : row.inputs_of(i))
          if (const Ref<Storage>& storage = input.impl()->storage)
            storage->used_on(row.kept_.launches[i].context.stream);
      row.kept_.clear();
    }
    LaunchRow& row;
  } const emptied{*this};
  bind();
  std::size_t begun = 0;
  try {
    run(begun);
  } catch (...) {
    for (std::size_t i = 0; i < begun; ++i) tear_updated(*kept_.updates[i].op, inputs_of(i));
    throw;
  }
  for (std::size_t i = 0; i < kept_.updates.size(); ++i)
    mark_updated(*kept_.updates[i].op, inputs_of(i));
}

}  // namespace ebb::detail
