#include <algorithm>

#include "ebb/core/autodiff/recompute.h"
#include "ebb/core/base/error.h"
#include "ebb/core/tensor/lineage.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/core/tensor/transfer.h"
#include "ebb/eager/prepared_cache.h"
#include "ebb/eager/tape.h"

namespace ebb::detail {

namespace {

using Buffers = InlineVector<Buffer, 6>;

// The one device of the inputs that have memory.
const Device& common_device(const OpDef& op, Inputs inputs, CallSite site) {
  const Device* device = nullptr;
  for (const Input& input : inputs) {
    const TensorImpl& impl = *input.tensor->impl();
    if (!impl.storage) {
      if (impl.used_up && !(op.shape_only & bit(static_cast<int>(&input - inputs.data()))))
        throw Error(message(op.name,
                            "an input was handed to another operator as a temporary, which used "
                            "its memory up; give it a name",
                            site));
      continue;
    }
    const Device& here = impl.storage->device();
    if (device && !(*device == here))
      throw Error(message(op.name,
                          "inputs are on " + device->name() + " and on " + here.name() +
                              "; move one with Tensor::to",
                          site));
    device = &here;
  }
  if (!device) throw Error(message(op.name, "no input has values", site));
  return *device;
}

// Whether nobody reads input i's memory after this application: a temporary that nobody else can
// see, and that is all there is of its memory. A view that leaves some of it out is none.
bool expires(Inputs inputs, std::size_t i) {
  if (!inputs[i].expiring) return false;
  const TensorImpl& impl = *inputs[i].tensor->impl();
  if (!impl.storage || impl.offset != 0 || !impl.unique() || !impl.storage->unique()) return false;
  if (impl.storage->bytes() != impl.spec.bytes()) return false;
  for (std::size_t j = 0; j < inputs.size(); ++j)
    if (j != i && inputs[j].tensor->impl() == &impl) return false;
  return true;
}

// Most applications have no input that is a temporary of the caller's expression, and ask no
// further.
bool has_temporaries(Inputs inputs) noexcept {
  return std::any_of(inputs.begin(), inputs.end(), [](const Input& i) { return i.expiring; });
}

// Of these inputs those that expire.
Mask expiring_of(Mask among, Inputs inputs) {
  Mask found = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if ((among & bit(static_cast<int>(i))) && expires(inputs, i)) found |= bit(static_cast<int>(i));
  return found;
}

// Takes its memory out of a handle, which lives on until its full expression ends.
Ref<Storage> take_out(const Input& input) {
  TensorImpl& impl = *input.tensor->impl();
  impl.used_up = true;
  return std::move(impl.storage);
}

// The memory of an input that output 0 may live in, so that the next operator of the expression can
// take it over in turn; or none.
Ref<Storage> take_over(const OpDef& op, Inputs inputs, Mask kept, const Spec& output,
                       memory::Category category) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!(op.takes_over & ~kept & bit(static_cast<int>(i)))) continue;
    if (!expires(inputs, i) || inputs[i].tensor->impl()->spec.bytes() != output.bytes()) continue;
    Ref<Storage> storage = take_out(inputs[i]);
    if (storage->category() != category) storage->recategorise(category);
    return storage;
  }
  return nullptr;
}

// What expires in an expression goes as soon as it has been read, not when the expression ends.
void free_expired(Inputs inputs) {
  for (const Input& input : inputs)
    if (input.expiring && input.tensor->impl()->unique()) take_out(input);
}

// An update in place reads nothing that it overwrites before it has read it.
void require_apart(const OpDef& op, Inputs inputs, CallSite site) {
  const TensorImpl& target = *inputs[0].tensor->impl();
  for (const Input& input : inputs.subspan(1)) {
    const TensorImpl& other = *input.tensor->impl();
    if (other.storage == target.storage &&
        overlap_in_part(target.offset, target.spec.bytes(), other.offset, other.spec.bytes()))
      throw Error(message(op.name, overlaps_target(), site));
  }
}

// A view of an input: no kernel, no memory.
Tensors run_view(const OpDef& op, Inputs inputs, const MemoryQuery& query, Mask wants) {
  const TensorImpl& viewed = *inputs[0].tensor->impl();
  Tensors results;
  results.push_back(
      make_concrete(query.outputs[0], viewed.storage, viewed.offset + op.view(query)));
  results[0].impl()->is_detached =
      viewed.is_detached || (op.stops_gradient & bit(0)) || (viewed.node && !wants);
  return results;
}

// The input on another device, whole.
Tensors run_move(const Tensor& from, const Device& device, const memory::Tag& tag) {
  Tensors results;
  results.push_back(allocate(from.impl()->spec, device, tape_mode().category, tag));
  Runtime& runtime = device.runtime();
  Stream* const stream = runtime.stream();
  results[0].impl()->storage->use_on(stream);
  transfer(from, runtime, stream, data(results[0]));
  return results;
}

// What may have been written is torn, and the error says what went wrong.
[[noreturn]] void fail(const OpDef& op, Inputs inputs, const Status& status, CallSite site) {
  for (std::size_t i = 0; op.updates >> i; ++i)
    if ((op.updates >> i & 1) && !status.refused) inputs[i].tensor->impl()->storage->tear(op.name);
  throw Error(message(op.name, describe(status), site));
}

// An update that sets all of a torn memory mends it.
bool sets_all(const OpDef& op, const TensorImpl& target) {
  return (op.overwrites & bit(0)) && target.offset == 0 &&
         target.spec.bytes() == target.storage->bytes();
}

void require_whole_inputs(const OpDef& op, Inputs inputs, CallSite site) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorImpl& impl = *inputs[i].tensor->impl();
    if (!impl.storage || !impl.storage->torn_by()) continue;
    if (op.shape_only & bit(static_cast<int>(i))) continue;
    if (i == 0 && sets_all(op, impl)) continue;
    require_whole(*impl.storage, op.name, site);
  }
}

// On a device with streams: what this application does comes after what others have done with the
// memory.
void use_on(Stream* stream, Inputs inputs, const Tensors& results, const Ref<Storage>& workspace) {
  for (const Input& input : inputs)
    if (const TensorImpl& impl = *input.tensor->impl(); impl.storage) impl.storage->use_on(stream);
  for (const Tensor& result : results)
    if (result.defined()) result.impl()->storage->use_on(stream);
  if (workspace) workspace->use_on(stream);
}

}  // namespace

// Everything is allocated before the kernel runs, so that running out of memory changes nothing.
Tensors run_now(const OpDef& op, Inputs inputs, const Attributes& attributes, CallSite site,
                const Device* given) {
  const Device& device = inputs.empty() && given ? *given : common_device(op, inputs, site);
  Runtime& runtime = device.runtime();
  const TapeMode mode = tape_mode();
  const memory::Tag tag = detail::tag(op.name, site);

  Specs in;
  for (const Input& input : inputs) in.emplace_back(input.tensor->impl()->spec);
  Specs out;
  Inference inference{op, {in.data(), in.size()}, attributes, site, out};
  op.infer(inference);
  MemoryQuery query{.inputs = {in.data(), in.size()},
                    .outputs = {out.data(), out.size()},
                    .attributes = &attributes,
                    .profile = &runtime.profile()};

  if (Storage::tears()) require_whole_inputs(op, inputs, site);
  if (op.updates) require_apart(op, inputs, site);
  if (mode.collector) mode.collector->note(op, inputs);
  const Mask wants = mode.records ? wanting_inputs(op, inputs, site) : 0;
  const Keeps keeps = wants ? keeps_of(op, wants) : Keeps{};
  const bool temporaries = has_temporaries(inputs);

  Tensors results;
  if (op.view) {
    results = run_view(op, inputs, query, wants);
  } else if (op.moves) {
    results = run_move(*inputs[0].tensor, *given, tag);
  } else {
    const DeviceKernel& kernel = kernel_of(op, runtime);
    if (op.destroys && temporaries)
      query.destroyed = expiring_of(op.destroys & ~keeps.inputs, inputs);
    query.wanted = wants ? kAll : ~op.optional_outputs;
    MemoryNeeds needs;
    if (kernel.memory) needs = kernel.memory(query);
    Ref<Prepared> prepared;
    if (kernel.prepare && !runtime.is_simulated())
      prepared = find_or_prepare(runtime, kernel, query);

    Buffers buffers;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      buffers.push_back({data(*inputs[i].tensor), in[i]});

    for (std::size_t i = 0; i < out.size(); ++i) {
      if (i == 0 && op.updates) {
        results.push_back(*inputs[0].tensor);
        continue;
      }
      if (~query.wanted & bit(static_cast<int>(i))) {
        results.emplace_back();
        continue;
      }
      if (kernel.memory && out[i].shape.is_open())
        out[i].shape = Shape{static_cast<std::int64_t>(needs.reserve_bytes)};
      Ref<Storage> storage;
      if (i == 0 && op.takes_over && temporaries)
        storage = take_over(op, inputs, keeps.inputs, out[0], mode.category);
      if (!storage)
        storage = make_ref<Storage>(device, memory::Request{out[i].bytes(), mode.category, tag});
      results.push_back(make_concrete(out[i], std::move(storage)));
    }
    Ref<Storage> workspace;
    if (needs.workspace_bytes)
      workspace = make_ref<Storage>(
          device, memory::Request{needs.workspace_bytes, memory::Category::workspace, tag});

    Stream* const stream = runtime.stream();
    if (runtime.has_streams()) use_on(stream, inputs, results, workspace);
    for (std::size_t i = 0; i < results.size(); ++i)
      buffers.push_back({results[i].defined() ? data(results[i]) : nullptr, out[i]});
    const Launch launch{.run = kernel.run,
                        .context = {.inputs = {buffers.data(), inputs.size()},
                                    .outputs = {buffers.data() + inputs.size(), results.size()},
                                    .attributes = &attributes,
                                    .workspace = workspace ? workspace->data() : nullptr,
                                    .destroyed = query.destroyed,
                                    .prepared = prepared.get(),
                                    .stream = stream},
                        .name = op.name};
    const Launched launched = runtime.run(stream, {&launch, 1});
    if (!launched.status.ok()) fail(op, inputs, launched.status, site);
    for (std::size_t i = 0; op.updates >> i; ++i)
      if (op.updates >> i & 1) inputs[i].tensor->impl()->storage->bump_version();
    if (op.overwrites && sets_all(op, *inputs[0].tensor->impl()))
      inputs[0].tensor->impl()->storage->mend();
  }

  if (wants) {
    record_on_tape(op, inputs, attributes, site, wants, keeps, results);
    if (op.moves) results[0].impl()->node->make_extra().device = device;
  }
  if (temporaries) free_expired(inputs);
  return results;
}

}  // namespace ebb::detail
