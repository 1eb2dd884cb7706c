#include <memory>

#include "ebb/core/autodiff/attempt.h"
#include "ebb/core/autodiff/recompute.h"
#include "ebb/core/base/error.h"
#include "ebb/core/tensor/detect_nan.h"
#include "ebb/core/tensor/index_check.h"
#include "ebb/core/tensor/kernel_of.h"
#include "ebb/core/tensor/launch_row.h"
#include "ebb/core/tensor/lineage.h"
#include "ebb/core/tensor/prepared_cache.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/eager/expiring.h"
#include "ebb/eager/tape.h"

namespace ebb::detail {

namespace {

using Buffers = InlineVector<Buffer, 6>;

// The device of all inputs that have memory. Throws Error if they are on several, or none has.
const Device& common_device(const OpDef& op, Inputs inputs, const IndexSet& unwanted,
                            CallSite site) {
  const Device* device = nullptr;
  for (const Input& input : inputs) {
    const TensorImpl& impl = *input.tensor->impl();
    if (!impl.storage) {
      if (needs_only_shape(op, static_cast<std::size_t>(&input - inputs.data()), unwanted))
        continue;
      refuse(op.name,
             impl.used_up ? "an input was handed to another operator as a temporary, which used "
                            "its memory up; give it a name"
                          : "only the shape of an input is known: a gradient rule reads what its "
                            "operator does not keep (OpDef::keeps)",
             site);
    }
    const Device& here = impl.storage->device();
    if (device && !(*device == here))
      refuse(op.name,
             device->name() == here.name()
                 ? "inputs are on two devices " + here.name() +
                       ": each Device::simulated() and twin() makes one of its own"
                 : "inputs are on " + device->name() + " and on " + here.name() +
                       "; move one with Tensor::to",
             site);
    device = &here;
  }
  if (!device) refuse(op.name, "no input has values", site);
  return *device;
}

// Throws if an input of an update in place overlaps the target in part: the kernel would overwrite
// values before it reads them.
void require_apart(const OpDef& op, Inputs inputs, CallSite site) {
  const TensorImpl& target = *inputs[0].tensor->impl();
  for (const Input& input : inputs.subspan(1)) {
    const TensorImpl& other = *input.tensor->impl();
    if (other.storage == target.storage &&
        overlap_in_part(target.offset, target.spec.bytes(), other.offset, other.spec.bytes()))
      refuse(op.name, overlaps_target(), site);
  }
}

// The inputs of a kernel, each whole where ranks have shares of it.
class WholeInputs {
 public:
  WholeInputs(const OpDef& op, Inputs given, CallSite site) : inputs_(given) {
    for (std::size_t i = 0; i < given.size(); ++i) {
      const TensorImpl& impl = *given[i].tensor->impl();
      if (!impl.storage || !impl.storage->in_shares() || op.shape_only.has(i)) continue;
      if (op.updates.has(i)) refuse(op.name, updates_shares(), site);
      if (wholes_.empty()) {
        wholes_.reserve(given.size());
        changed_.assign(given.begin(), given.end());
        inputs_ = changed_;
      }
      wholes_.push_back(
          make_concrete(impl.spec, impl.storage->in_shares()->whole(true), impl.offset));
      changed_[i] = Input(wholes_.back());
    }
  }
  Inputs inputs() const noexcept { return inputs_; }

 private:
  Inputs inputs_;
  std::vector<Tensor> wholes_;
  std::vector<Input> changed_;
};

// The outputs that are left out: nobody reads them, or only a gradient that nobody asks for.
IndexSet unwanted_outputs(const OpDef& op, std::size_t outputs, const IndexSet& unwanted,
                          const IndexSet& wants) {
  IndexSet found;
  for (std::size_t i = 0; i < outputs; ++i)
    if ((op.gradient_outputs.has(i) && wants.empty()) ||
        (op.optional_outputs.has(i) && unwanted.has(i)))
      found.insert(i);
  return found;
}

// Makes a view of an input: no kernel, no memory.
Tensor run_view(const OpDef& op, Inputs inputs, const MemoryQuery& query, const IndexSet& wants) {
  const TensorImpl& viewed = *inputs[0].tensor->impl();
  Tensor result = make_concrete(query.outputs[0], viewed.storage, viewed.offset + op.view(query));
  result.impl()->is_detached =
      viewed.is_detached || op.stops_gradient.has(0) || (viewed.node && wants.empty());
  return result;
}

// Copies the input to another device.
Tensor run_move(const Tensor& from, const Device& device, const memory::Tag& tag) {
  Tensor result = allocate(from.impl()->spec, device, tape_mode().category, tag);
  Runtime& runtime = device.runtime();
  Stream* const stream = runtime.stream();
  result.impl()->storage->use_on(stream);
  transfer(from, runtime, stream, data(result));
  return result;
}

void require_whole_inputs(const OpDef& op, Inputs inputs, CallSite site) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const TensorImpl& impl = *inputs[i].tensor->impl();
    if (!impl.storage || !impl.storage->torn_by() || op.shape_only.has(i)) continue;
    if (i > 0 || !sets_all(op, impl)) require_whole(*impl.storage, op.name, site);
  }
}

// Orders this application after the work of other streams on the same memory.
void use_on(Stream* stream, Inputs inputs, const Tensors& results, const Ref<Storage>& workspace) {
  for (const Input& input : inputs)
    if (const TensorImpl& impl = *input.tensor->impl(); impl.storage) impl.storage->use_on(stream);
  for (const Tensor& result : results)
    if (result.defined()) result.impl()->storage->use_on(stream);
  if (workspace) workspace->use_on(stream);
}

void used_on(Stream* stream, Inputs inputs) noexcept {
  for (const Input& input : inputs)
    if (const TensorImpl& impl = *input.tensor->impl(); impl.storage) impl.storage->used_on(stream);
}

// An application whose kernel runs, as known before its memory is allocated.
struct KernelApplication {
  const OpDef& op;
  Inputs inputs;
  CallSite site;
  const Device& device;
  const IndexSet& wants;  // inputs that want a gradient
  bool temporaries = false;
  memory::Category category;
};

void require_in_range(const KernelApplication& a, const KernelContext& context, Runtime& runtime,
                      Stream* stream) {
  const std::string found = find_out_of_range(a.op, context, runtime, stream, a.site);
  if (!found.empty()) throw Error(found);
}

// Notes the state that an attempt() under way would have to restore.
void note_states(const KernelApplication& a) {
  for (std::size_t i = 0; i < a.inputs.size(); ++i)
    if (const Ref<Storage>& storage = a.inputs[i].tensor->impl()->storage;
        a.op.updates.has(i) && storage->is_state())
      Attempt::note_update(storage, detail::tag(a.op.name, a.site));
}

// Allocates everything before the kernel runs, so that running out of memory changes nothing.
void run_kernel(const KernelApplication& a, MemoryQuery& query, Specs& out,
                const IndexSet& unwanted, Tensors& results) {
  const OpDef& op = a.op;
  Runtime& runtime = a.device.runtime();
  const DeviceKernel& kernel = kernel_of(op, runtime, a.site);
  const memory::Tag tag = detail::tag(op.name, a.site);
  IndexSet destroyed, left_out;
  if (a.temporaries && !op.destroys.empty()) destroyed = destroyed_inputs(op, a.inputs, a.wants);
  if (!op.gradient_outputs.empty() || !op.optional_outputs.empty())
    left_out = unwanted_outputs(op, out.size(), unwanted, a.wants);
  query.destroyed = &destroyed;
  query.unwanted = &left_out;
  MemoryNeeds needs;
  if (kernel.memory) needs = kernel.memory(query);
  Ref<Prepared> prepared;
  if (kernel.prepare && !runtime.is_simulated()) {
    query.allocator = &runtime.allocator();
    query.stream = runtime.stream();
    query.workspace_bytes = needs.workspace_bytes;
    thread_local PreparedCache cache;
    prepared = cache.find_or_prepare(runtime, op, kernel, query);
  }

  Buffers buffers;
  for (std::size_t i = 0; i < a.inputs.size(); ++i)  // before their memory is taken over
    buffers.push_back({data(*a.inputs[i].tensor), query.inputs[i]});
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (i == 0 && !op.updates.empty()) {
      results.push_back(*a.inputs[0].tensor);
      continue;
    }
    if (left_out.has(i)) {
      results.emplace_back();
      continue;
    }
    if (out[i].shape.is_open()) require_memory_rule(op, kernel, a.site);
    if (kernel.memory && out[i].shape.is_open())
      out[i].shape = Shape{static_cast<std::int64_t>(needs.reserve_bytes)};
    Ref<Storage> storage;
    if (i == 0 && a.temporaries && !op.takes_over.empty())
      storage = take_over(op, a.inputs, a.wants, out[0], a.category);
    if (!storage)
      storage = make_ref<Storage>(a.device, memory::Request{out[i].bytes(), a.category, tag});
    results.push_back(make_concrete(out[i], std::move(storage)));
  }
  Ref<Storage> workspace;
  if (needs.workspace_bytes)
    workspace = make_ref<Storage>(
        a.device, memory::Request{needs.workspace_bytes, memory::Category::workspace, tag});
  for (std::size_t i = 0; i < results.size(); ++i)
    buffers.push_back({results[i].defined() ? data(results[i]) : nullptr, out[i]});

  Stream* const stream = runtime.stream();
  if (runtime.has_streams()) use_on(stream, a.inputs, results, workspace);
  const Launch launch{.run = runtime.is_simulated() ? kernel.simulated : kernel.run,
                      .context = {.inputs = {buffers.data(), a.inputs.size()},
                                  .outputs = {buffers.data() + a.inputs.size(), results.size()},
                                  .attributes = query.attributes,
                                  .workspace = workspace ? workspace->data() : nullptr,
                                  .destroyed = &destroyed,
                                  .prepared = prepared.get(),
                                  .stream = stream},
                      .name = op.name,
                      .run_merged = kernel.run_merged};
  const bool updates = !op.updates.empty();
  LaunchRow* const row = tape_mode().row;
  if (updates && Attempt::is_under_way() && !(row && row->kind() == LaunchRow::stays))
    note_states(a);
  if (row) {
    if (updates && a.wants.empty()) {
      row->add(runtime, op, launch, a.inputs, results, std::move(workspace), std::move(prepared),
               a.site);
      return;
    }
    row->flush();
  }
  const NanCheck nan_check = nan_check_on(runtime);
  if (checks_indices(op, launch.context, runtime, nan_check)) [[unlikely]]
    require_in_range(a, launch.context, runtime, stream);
  const Launched launched = runtime.run(stream, {&launch, 1});
  if (runtime.has_streams()) used_on(stream, a.inputs);
  if (!launched.status.ok()) {
    if (!launched.status.refused) tear_updated(op, a.inputs);
    throw Error(describe_failure(op, launch.context, launched.status, runtime, stream, a.site));
  }
  if (updates) mark_updated(op, a.inputs);
  if (nan_check == NanCheck::none) return;
  const std::string found = find_nan(launch.context, nan_check, runtime, stream, a.site);
  if (found.empty()) return;
  tear_updated(op, a.inputs);
  refuse<NotANumber>(op.name, found, a.site);
}

// Handles of an operator's inputs. A watch call may drop handles of inputs that the caller named. A
// temporary is out of its reach and stays one.
class HeldInputs {
 public:
  explicit HeldInputs(Inputs inputs) {
    handles_.reserve(inputs.size());
    for (const Input& input : inputs) {
      Input& held = inputs_.emplace_back(input);
      if (input.expiring) continue;
      handles_.push_back(*input.tensor);
      held.tensor = &handles_[handles_.size() - 1];
    }
  }
  Inputs inputs() const noexcept { return {inputs_.data(), inputs_.size()}; }
  // To be called when all inputs have been read: a temporary that was given twice has only the
  // caller's handle again.
  void let_go() noexcept { handles_ = {}; }

 private:
  Tensors handles_;
  InlineVector<Input, 4> inputs_;
};

bool is_watched(const Device& device) noexcept { return device.runtime().allocator().is_watched(); }

}  // namespace

Tensors run_now(const OpDef& op, Inputs inputs, const Attributes& attributes, CallSite site,
                const IndexSet& unwanted, const Device* given) {
  const Device& device =
      inputs.empty() && given ? *given : common_device(op, inputs, unwanted, site);
  std::unique_ptr<HeldInputs> held;  // null in most runs: nobody watches the allocator
  if (is_watched(device) || (given && is_watched(*given))) [[unlikely]] {
    held = std::make_unique<HeldInputs>(inputs);
    inputs = held->inputs();
  }
  const TapeMode& mode = tape_mode();
  Specs in, out;
  for (const Input& input : inputs) in.emplace_back(input.tensor->impl()->spec);
  require_shape_rule(op, site);
  Inference inference{op, {in.data(), in.size()}, attributes, site, out};
  op.infer(inference);

  if (Storage::any_torn() && !op.view) require_whole_inputs(op, inputs, site);
  if (!op.updates.empty()) require_apart(op, inputs, site);
  if (mode.collector) mode.collector->note(op, inputs);
  bool lost_history = false;
  const IndexSet wants = mode.records ? wanting_inputs(op, inputs, site, lost_history) : IndexSet();
  const bool temporaries = has_temporaries(inputs);

  MemoryQuery query{.inputs = {in.data(), in.size()},
                    .outputs = {out.data(), out.size()},
                    .attributes = &attributes,
                    .profile = &device.runtime().profile()};
  Tensors results;
  if (op.view)
    results.push_back(run_view(op, inputs, query, wants));
  else if (op.moves)
    results.push_back(run_move(*inputs[0].tensor, *given, detail::tag(op.name, site)));
  else
    run_kernel({op, WholeInputs(op, inputs, site).inputs(), site, device, wants, temporaries,
                mode.category},
               query, out, unwanted, results);

  if (!wants.empty()) record_on_tape(op, inputs, attributes, site, wants, results);
  if (op.moves && !wants.empty()) results[0].impl()->node->make_extra().device = device;
  if (lost_history) [[unlikely]]
    for (const Tensor& result : results)
      if (result.defined()) result.impl()->lost_history = is_floating(result.dtype());
  if (temporaries) {
    if (held) held->let_go();
    free_expired(inputs);
  }
  return results;
}

}  // namespace ebb::detail
