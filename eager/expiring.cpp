#include "ebb/eager/expiring.h"

namespace ebb::detail {

namespace {

// Whether the tape will hold input i's memory.
bool is_kept(const OpDef& op, std::size_t i, const IndexSet& wants) {
  return !wants.empty() && keeps_input(op, i, wants);
}

// Whether nobody reads input i's memory after this application: the input is a temporary without
// another handle and covers all of its memory (no partial view).
bool expires(Inputs inputs, std::size_t i) {
  if (!inputs[i].expiring) return false;
  const TensorImpl& impl = *inputs[i].tensor->impl();
  if (!impl.storage || impl.offset != 0 || !impl.unique() || !impl.storage->unique()) return false;
  if (impl.storage->bytes() != impl.spec.bytes()) return false;
  for (std::size_t j = 0; j < inputs.size(); ++j)
    if (j != i && inputs[j].tensor->impl() == &impl) return false;
  return true;
}

// Takes the memory out of a temporary, which itself lives until its full expression ends.
Ref<Storage> take_out(const Input& input) {
  TensorImpl& impl = *input.tensor->impl();
  impl.used_up = true;
  return std::move(impl.storage);
}

}  // namespace

IndexSet destroyed_inputs(const OpDef& op, Inputs inputs, const IndexSet& wants) {
  IndexSet found;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (op.destroys.has(i) && !is_kept(op, i, wants) && expires(inputs, i)) found.insert(i);
  return found;
}

Ref<Storage> take_over(const OpDef& op, Inputs inputs, const IndexSet& wants, const Spec& output,
                       memory::Category category) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!op.takes_over.has(i) || is_kept(op, i, wants)) continue;
    if (!expires(inputs, i) || inputs[i].tensor->impl()->spec.bytes() != output.bytes()) continue;
    Ref<Storage> storage = take_out(inputs[i]);
    storage->begin_anew();
    if (storage->category() != category) storage->recategorise(category);
    return storage;
  }
  return nullptr;
}

void free_expired(Inputs inputs) {
  for (const Input& input : inputs)
    if (input.expiring && input.tensor->impl()->unique()) take_out(input);
}

}  // namespace ebb::detail
