#include "ebb/graph/variables.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ebb/core/base/error.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

using memory::Category;

SessionVariables::Added SessionVariables::missing(std::span<const std::uint32_t> others) const {
  const auto& declared = graph_.variables();
  Added missing;
  for (std::size_t i = looked_at_; i < declared.size(); ++i)
    if (declared[i].category == Category::parameter && !has_memory(i))
      missing.parameters.indices.push_back(static_cast<std::uint32_t>(i));
  for (const std::uint32_t index : others)
    if (declared[index].category != Category::parameter && !has_memory(index))
      missing.slots.indices.push_back(index);
  return missing;
}

std::size_t SessionVariables::rounded_bytes(std::span<const std::uint32_t> indices) const noexcept {
  std::size_t bytes = 0;
  for (const std::uint32_t index : indices) bytes += rounded_bytes(declaration(index));
  return bytes;
}

std::size_t SessionVariables::reserved_bytes_with(std::span<const std::uint32_t> others,
                                                  bool slots_on_host) const {
  const Added added = missing(others);
  const memory::Profile& profile = runtime_.profile();
  const std::size_t parameters =
      reserved_parameter_bytes_ + profile.in_pages(rounded_bytes(added.parameters.indices));
  if (on_host_ || slots_on_host) return parameters;
  return parameters + reserved_slot_bytes_ + profile.in_pages(rounded_bytes(added.slots.indices));
}

std::size_t SessionVariables::bytes_beyond_plans() const {
  const Indices all = indices();
  const Added added = missing(all);
  const memory::Profile& profile = runtime_.profile();
  const std::size_t slots =
      on_host_ ? 0 : profile.in_pages(slot_bytes_ + rounded_bytes(added.slots.indices));
  return reserved_bytes_with(all) -
         profile.in_pages(parameter_bytes_ + rounded_bytes(added.parameters.indices)) - slots;
}

SessionVariables::Indices SessionVariables::indices() const {
  Indices all(size());
  std::iota(all.begin(), all.end(), 0U);
  return all;
}

SessionVariables::Added SessionVariables::allocate(std::span<const std::uint32_t> others) {
  Added added = missing(others);
  try {
    values_.resize(size());
    provide(added.parameters);
    provide(added.slots);
    looked_at_ = size();
    for (const std::uint32_t index : added.slots.indices) begin(index);
  } catch (...) {
    release(added);
    throw;
  }
  return added;
}

void SessionVariables::release(const Added& added) noexcept {
  for (const Segment* segment : {&added.slots, &added.parameters}) {
    if (segment->indices.empty() || !has_memory(segment->indices[0])) continue;
    for (const std::uint32_t index : segment->indices) {
      if (values_[index].torn_by) --tears_;
      values_[index] = {};
    }
    const bool are_slots = segment == &added.slots;
    (are_slots ? slot_bytes_ : parameter_bytes_) -= rounded_bytes(segment->indices);
    if (are_slots && on_host_) {
      if (host_pool_) host_pool_->free(segment->block);
      continue;
    }
    (are_slots ? reserved_slot_bytes_ : reserved_parameter_bytes_) -=
        runtime_.profile().in_pages(segment->block->allocated_bytes());
    pool_.free(segment->block);
  }
  for (const std::uint32_t index : added.parameters.indices)
    looked_at_ = std::min<std::size_t>(looked_at_, index);
  if (slot_bytes_ > 0) return;
  on_host_ = false;
  host_pool_.reset();
}

void SessionVariables::keep_slots_on_host() {
  Segment moved;
  std::vector<memory::Block*> left;
  for (std::uint32_t i = 0; i < values_.size(); ++i) {
    if (!has_memory(i) || declaration(i).category == Category::parameter) continue;
    moved.indices.push_back(i);
    if (std::ranges::find(left, values_[i].block) == left.end()) left.push_back(values_[i].block);
  }
  std::vector<Value> before = values_;
  const std::size_t bytes = std::exchange(slot_bytes_, 0);
  on_host_ = true;
  try {
    if (memory::CachingAllocator* const locked = runtime_.staging())
      host_pool_ = locked->make_pool("session");
    provide(moved);
    for (const std::uint32_t i : moved.indices) {
      values_[i].initialized = before[i].initialized;
      values_[i].torn_by = before[i].torn_by;
      runtime_.copy(stream_, data(i),
                    static_cast<const std::byte*>(before[i].block->data()) + before[i].offset,
                    declaration(i).spec.bytes());
    }
  } catch (...) {
    values_ = std::move(before);
    on_host_ = false;
    slot_bytes_ = bytes;
    host_pool_.reset();
    throw;
  }
  for (memory::Block* block : left) pool_.free(block);
  reserved_slot_bytes_ = 0;
}

void SessionVariables::provide(Segment& segment) {
  if (segment.indices.empty()) return;
  const bool are_slots = declaration(segment.indices[0]).category != Category::parameter;
  memory::Request request{.purpose = are_slots ? "session optimizer state" : "session parameters"};
  memory::Composition composition;
  std::size_t largest = 0;
  for (const std::uint32_t index : segment.indices) {
    const VariableDeclaration& variable = declaration(index);
    const std::size_t each = rounded_bytes(variable);
    const memory::Tag asks = tag(name(variable.category), variable.site);
    if (each > largest) {
      largest = each;
      request.tag = asks;
    }
    request.bytes += each;
    composition.split[static_cast<std::size_t>(variable.category)] += each;
    composition.holders.push_back({asks, each, 1});
  }
  request.category = declaration(segment.indices[0]).category;
  const bool on_host = are_slots && on_host_;
  if (memory::Pool* const pool = on_host ? host_pool_.get() : &pool_)
    segment.block = pool->allocate(request, std::move(composition));
  std::size_t offset = 0;
  for (const std::uint32_t index : segment.indices) {
    values_[index] = {segment.block, offset, true};
    offset += rounded_bytes(declaration(index));
  }
  (are_slots ? slot_bytes_ : parameter_bytes_) += offset;
  if (!on_host)
    (are_slots ? reserved_slot_bytes_ : reserved_parameter_bytes_) +=
        runtime_.profile().in_pages(segment.block->allocated_bytes());
}

std::size_t SessionVariables::rounded_bytes(const VariableDeclaration& variable) const noexcept {
  return runtime_.profile().rounded(variable.spec.bytes());
}

std::unordered_map<std::string_view, std::size_t> SessionVariables::by_name(
    Which which, const char* what) const {
  std::unordered_map<std::string_view, std::size_t> found;
  for (std::size_t i = 0; i < size(); ++i) {
    const VariableDeclaration& variable = declaration(i);
    if (which == parameters && variable.category != Category::parameter) continue;
    const auto [first, is_first] = found.emplace(variable.name, i);
    if (!is_first)
      refuse(what, "two sets of Parameters have a '" + variable.name + "', declared" +
                       at(declaration(first->second).site) + " and" + at(variable.site) +
                       "; name a set by ParametersOptions::name, or " + what +
                       " one set at a time");
  }
  return found;
}

void SessionVariables::draw_initial(std::size_t index) {
  if (is_random_state(index)) return;
  const VariableDeclaration& variable = declaration(index);
  runtime_.write(stream_, data(index), variable.spec.bytes(), [&](void* values) {
    const auto& [name, spec, initializer, seed, category, site, world, whole] = variable;
    if (whole && category == Category::parameter)
      draw_initial_share(initializer, seed, name, {spec.dtype, *whole}, *world, values);
    else
      draw_initial_values(initializer, seed, name, spec, values);
  });
  is_set(index);
}

void SessionVariables::write(std::size_t index, const void* value) {
  runtime_.copy_in(stream_, data(index), value, declaration(index).spec.bytes());
  is_set(index);
}

void SessionVariables::write(std::size_t index, const Tensor& value) {
  transfer(value, runtime_, stream_, data(index));
  is_set(index);
}

void SessionVariables::write(std::size_t index, const SessionVariables& others, std::size_t other) {
  void* const from = others.data(other);
  if (from == data(index) && &others == this) return;
  const std::size_t bytes = declaration(index).spec.bytes();
  if (&others.runtime_ == &runtime_) {
    runtime_.wait(stream_, others.stream_);
    runtime_.copy(stream_, data(index), from, bytes);
    runtime_.wait(others.stream_, stream_);  // the other session may write there next
  } else if (!runtime_.is_simulated()) {
    runtime_.copy_in(stream_, data(index), others.view(other).data(), bytes);
  }
  is_set(index);
}

HostView SessionVariables::view(std::size_t index) const {
  return HostView(runtime_, stream_, data(index), declaration(index).spec.bytes());
}

void SessionVariables::zero(std::size_t index) {
  if (is_random_state(index)) return;
  runtime_.fill(stream_, data(index), 0, declaration(index).spec.bytes());
  is_set(index);
}

void SessionVariables::begin(std::size_t index) {
  if (!is_random_state(index)) return zero(index);
  const std::int64_t state[] = {static_cast<std::int64_t>(random_key_), 0};
  write(index, state);
}

void SessionVariables::is_set(std::size_t index) noexcept {
  values_[index].initialized = true;
  if (std::exchange(values_[index].torn_by, nullptr)) --tears_;
}

void SessionVariables::tear(std::size_t index, const char* by) noexcept {
  if (!std::exchange(values_[index].torn_by, by)) ++tears_;
}

void SessionVariables::require_value(std::size_t index, const char* what) const {
  if (!is_initialized(index))
    refuse(what, "variable '" + declaration(index).name + "' has no value");
  const std::uint32_t indices[] = {static_cast<std::uint32_t>(index)};
  if (tears_) require_whole(indices);
}

void SessionVariables::require_whole(std::span<const std::uint32_t> indices) const {
  for (const std::uint32_t index : indices)
    if (has_memory(index) && values_[index].torn_by)
      refuse("run",
             "variable '" + declaration(index).name + "' was being updated by " +
                 values_[index].torn_by +
                 " when a run failed, and may hold half a step; assign, initialize or restore it");
}

}  // namespace ebb::detail
