#include "ebb/graph/executable.h"

#include <cstring>

#include "ebb/core/base/error.h"
#include "ebb/core/kernels/workers.h"

namespace ebb::detail {

Executable::Executable(Program program) : program_(std::move(program)) {
  for (std::uint32_t i = 0; i < program_.values.size(); ++i) {
    const PlacedValue& value = program_.values[i];
    buffers_.push_back({nullptr, value.spec});
    if (value.place.kind == Place::feed)
      feed_patches_.push_back({i, value.place.index, value.place.offset});
    if (value.place.kind == Place::fetch)
      fetch_patches_.push_back({i, value.place.index, value.place.offset});
  }
}

void* Executable::address(const Place& place) const noexcept {
  switch (place.kind) {
    case Place::arena:
      return arena_ + program_.arena_offsets[place.index] + place.offset;
    case Place::variable:
      return static_cast<std::byte*>(variables_->data(place.index)) + place.offset;
    case Place::captured:
      return program_.captured[place.index]->extra->tensor.impl()->storage->data() + place.offset;
    case Place::nowhere:
    case Place::feed:
    case Place::fetch:
      break;  // patched in
  }
  return nullptr;
}

void Executable::bind(std::byte* arena, const SessionVariables& variables, const Device& device) {
  if (bound_ && arena == arena_ && poisons_ == device.runtime().poisons()) return;
  for (const std::uint32_t index : program_.variables)
    if (!variables.is_initialized(index))
      throw Error("[run] variable '" + variables.declaration(index).name +
                  "' has no value; call initialize or restore first");
  simulated_ = device.is_simulated();
  poisons_ = device.runtime().poisons();
  for (const Node* node : program_.captured) {
    const Device& where = node->extra->tensor.impl()->storage->device();
    if (!(where == device) && !simulated_)
      throw Error(message("run",
                          "the graph captured a tensor on " + where.name() +
                              " and the session runs on " + device.name(),
                          node->site));
  }
  arena_ = arena;
  variables_ = &variables;
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    buffers_[i].data = address(program_.values[i].place);
  bound_ = true;
}

void Executable::run(std::span<void* const> feeds, std::span<void* const> fetches) {
  if (simulated_) return;
  for (const Patch& patch : feed_patches_)
    buffers_[patch.value].data = static_cast<std::byte*>(feeds[patch.index]) + patch.offset;
  for (const Patch& patch : fetch_patches_)
    buffers_[patch.value].data = static_cast<std::byte*>(fetches[patch.index]) + patch.offset;
  flush_denormals_on_this_thread();
  if (poisons_) poison(arena_, program_.plan.arena_bytes);
  auto dying = program_.arena_lives.begin();
  for (const Step& step : program_.steps) {
    const Buffer* values = buffers_.data() + step.first_value;
    const Status status =
        step.run({.inputs = {values, step.inputs},
                  .outputs = {values + step.inputs, step.outputs},
                  .attributes = &step.node->attributes,
                  .workspace = step.workspace == ~std::uint32_t{0}
                                   ? nullptr
                                   : arena_ + program_.arena_offsets[step.workspace],
                  .destroyed = &step.destroyed});
    if (!status.ok()) throw Error(message(step.node->op->name, status.problem, step.node->site));
    if (!poisons_) continue;
    const auto now = static_cast<std::size_t>(&step - program_.steps.data());
    for (; dying != program_.arena_lives.end() && dying->last == now; ++dying)
      poison(arena_ + dying->offset, dying->bytes);
  }
  for (const std::uint32_t index : program_.updated_captured)
    program_.captured[index]->extra->tensor.impl()->storage->bump_version();
  for (std::size_t f = 0; f < fetches.size(); ++f) {
    const Fetch& fetch = program_.fetches[f];
    const Place& place = fetch.copied_from;
    if (place.kind == Place::nowhere || fetch.spec.bytes() == 0) continue;
    const void* from =
        place.kind == Place::feed    ? static_cast<std::byte*>(feeds[place.index]) + place.offset
        : place.kind == Place::fetch ? static_cast<std::byte*>(fetches[place.index]) + place.offset
                                     : address(place);
    std::memcpy(fetches[f], from, fetch.spec.bytes());
  }
}

}  // namespace ebb::detail
