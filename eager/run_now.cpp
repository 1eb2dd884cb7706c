#include <algorithm>

#include "ebb/core/autodiff/recompute.h"
#include "ebb/core/base/error.h"
#include "ebb/core/kernels/workers.h"
#include "ebb/core/tensor/lineage.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"
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
      if (impl.used_up && !op.shape_only.has(static_cast<std::size_t>(&input - inputs.data())))
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

// Whether the tape will hold input i's memory.
bool is_kept(const OpDef& op, std::size_t i, const IndexSet& wants) {
  return !wants.empty() && keeps_input(op, i, wants);
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

// Of the inputs that the operator destroys those that expire, and that no gradient keeps.
IndexSet destroyed_inputs(const OpDef& op, Inputs inputs, const IndexSet& wants) {
  IndexSet found;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (op.destroys.has(i) && !is_kept(op, i, wants) && expires(inputs, i)) found.insert(i);
  return found;
}

// The outputs that are left out: nobody reads them, or only the gradient that nobody asks for.
IndexSet left_out(const OpDef& op, std::size_t outputs, const IndexSet& unwanted,
                  const IndexSet& wants) {
  IndexSet found;
  for (std::size_t i = 0; i < outputs; ++i)
    if ((op.optional_outputs.has(i) && wants.empty()) ||
        (op.skippable_outputs.has(i) && unwanted.has(i)))
      found.insert(i);
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
Ref<Storage> take_over(const OpDef& op, Inputs inputs, const IndexSet& wants, const Spec& output,
                       memory::Category category) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!op.takes_over.has(i) || is_kept(op, i, wants)) continue;
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

Tensor concrete(const Spec& spec, Ref<Storage> storage, std::size_t offset = 0) {
  return make_concrete(spec, std::move(storage), offset);
}

}  // namespace

// Everything is allocated before the kernel runs, so that running out of memory changes nothing.
Tensors run_now(const OpDef& op, Inputs inputs, const Attributes& attributes, CallSite site,
                const IndexSet& unwanted) {
  const Device& device = common_device(op, inputs, site);
  Runtime& runtime = device.runtime();
  const TapeMode mode = tape_mode();
  const memory::Tag tag = detail::tag(op.name, site);

  Specs in;
  for (const Input& input : inputs) in.emplace_back(input.tensor->impl()->spec);
  Specs out;
  Inference inference{op, {in.data(), in.size()}, attributes, site, out};
  op.infer(inference);

  if (!op.updates.empty()) require_apart(op, inputs, site);
  if (mode.collector) mode.collector->note(op, inputs);
  const IndexSet wants = mode.records ? wanting_inputs(op, inputs, site) : IndexSet();
  const bool temporaries = has_temporaries(inputs);

  Tensors results;
  if (op.view) {
    const TensorImpl& viewed = *inputs[0].tensor->impl();
    const MemoryQuery query{{in.data(), in.size()}, {out.data(), out.size()}, &attributes};
    results.push_back(concrete(out[0], viewed.storage, viewed.offset + op.view(query)));
    results[0].impl()->is_detached = viewed.is_detached || (viewed.node && wants.empty());
  } else {
    const DeviceKernel& kernel = kernel_of(op, runtime);
    Buffers buffers;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      buffers.push_back({data(*inputs[i].tensor), in[i]});
    IndexSet destroyed;
    if (temporaries && !op.destroys.empty()) destroyed = destroyed_inputs(op, inputs, wants);
    IndexSet missing;
    if (!op.optional_outputs.empty() || !op.skippable_outputs.empty())
      missing = left_out(op, out.size(), unwanted, wants);
    MemoryNeeds needs;
    if (kernel.memory)
      needs = kernel.memory({.inputs = {in.data(), in.size()},
                             .outputs = {out.data(), out.size()},
                             .attributes = &attributes,
                             .destroyed = &destroyed,
                             .unwanted = &missing});

    for (std::size_t i = 0; i < out.size(); ++i) {
      if (i == 0 && !op.updates.empty()) {
        results.push_back(*inputs[0].tensor);
        continue;
      }
      if (missing.has(i)) {
        results.emplace_back();
        continue;
      }
      if (kernel.memory && out[i].shape.is_open())
        out[i].shape = Shape{static_cast<std::int64_t>(needs.reserve_bytes)};
      Ref<Storage> storage;
      if (i == 0 && temporaries && !op.takes_over.empty())
        storage = take_over(op, inputs, wants, out[0], mode.category);
      if (!storage)
        storage = make_ref<Storage>(device, memory::Request{out[i].bytes(), mode.category, tag});
      results.push_back(concrete(out[i], std::move(storage)));
    }
    Ref<Storage> workspace;
    if (needs.workspace_bytes)
      workspace = make_ref<Storage>(
          device, memory::Request{needs.workspace_bytes, memory::Category::workspace, tag});

    if (!runtime.is_simulated()) {
      for (std::size_t i = 0; i < results.size(); ++i)
        buffers.push_back({results[i].defined() ? data(results[i]) : nullptr, out[i]});
      flush_denormals_on_this_thread();
      const Status status = kernel.run({.inputs = {buffers.data(), inputs.size()},
                                        .outputs = {buffers.data() + inputs.size(), results.size()},
                                        .attributes = &attributes,
                                        .workspace = workspace ? workspace->data() : nullptr,
                                        .destroyed = &destroyed});
      if (!status.ok()) throw Error(message(op.name, status.problem, site));
    }
    if (!op.updates.empty())
      for (std::size_t i = 0; i < inputs.size(); ++i)
        if (op.updates.has(i)) inputs[i].tensor->impl()->storage->bump_version();
  }

  if (!wants.empty()) record_on_tape(op, inputs, attributes, site, wants, results);
  if (temporaries) free_expired(inputs);
  return results;
}

}  // namespace ebb::detail
