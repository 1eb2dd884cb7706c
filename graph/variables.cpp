#include "ebb/graph/variables.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "ebb/core/base/error.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

using memory::Category;

SessionVariables::Missing SessionVariables::missing(std::span<const std::uint32_t> others) const {
  const auto& declared = graph_.variables();
  Missing missing;
  for (std::size_t i = looked_at_; i < declared.size(); ++i)
    if (declared[i].category == Category::parameter && !has_memory(i))
      missing.parameters.push_back(static_cast<std::uint32_t>(i));
  for (const std::uint32_t index : others)
    if (declared[index].category != Category::parameter && !has_memory(index))
      missing.slots.push_back(index);
  return missing;
}

std::size_t SessionVariables::rounded_bytes(std::span<const std::uint32_t> indices) const noexcept {
  std::size_t bytes = 0;
  for (const std::uint32_t index : indices) bytes += rounded_bytes(declaration(index));
  return bytes;
}

std::size_t SessionVariables::reserved_bytes_with(std::span<const std::uint32_t> others) const {
  const Missing added = missing(others);
  const memory::Profile& profile = runtime_.profile();
  return reserved_bytes_ + profile.in_pages(rounded_bytes(added.parameters)) +
         profile.in_pages(rounded_bytes(added.slots));
}

std::size_t SessionVariables::bytes_beyond_plans() const {
  std::vector<std::uint32_t> all(size());
  std::iota(all.begin(), all.end(), 0U);
  const Missing added = missing(all);
  const memory::Profile& profile = runtime_.profile();
  return reserved_bytes_with(all) -
         profile.in_pages(parameter_bytes_ + rounded_bytes(added.parameters)) -
         profile.in_pages(slot_bytes_ + rounded_bytes(added.slots));
}

SessionVariables::Added SessionVariables::allocate(std::span<const std::uint32_t> others) {
  const auto& declared = graph_.variables();
  const auto [parameters, slots] = missing(others);
  Added added{.indices = parameters};
  added.indices.insert(added.indices.end(), slots.begin(), slots.end());
  added.parameters = segment(parameters, "session parameters");
  try {
    added.slots = segment(slots, "session optimizer state");
    values_.resize(declared.size());
  } catch (...) {
    pool_.free(added.slots);
    pool_.free(added.parameters);
    throw;
  }
  lay_out(parameters, added.parameters);
  lay_out(slots, added.slots);
  looked_at_ = declared.size();
  try {
    for (const std::uint32_t index : slots) begin(index);
  } catch (...) {
    release(added);
    throw;
  }
  return added;
}

void SessionVariables::release(const Added& added) noexcept {
  for (const std::uint32_t index : added.indices) {
    const bool is_parameter = declaration(index).category == Category::parameter;
    (is_parameter ? parameter_bytes_ : slot_bytes_) -= rounded_bytes(declaration(index));
    if (values_[index].torn_by) --tears_;
    values_[index] = {};
    if (is_parameter) looked_at_ = std::min<std::size_t>(looked_at_, index);
  }
  for (memory::Block* block : {added.slots, added.parameters}) {
    if (block) reserved_bytes_ -= runtime_.profile().in_pages(block->allocated_bytes());
    pool_.free(block);
  }
}

memory::Block* SessionVariables::segment(std::span<const std::uint32_t> indices,
                                         const char* purpose) {
  if (indices.empty()) return nullptr;
  memory::Request request{.purpose = purpose};
  memory::Composition composition;
  std::size_t largest = 0;
  for (const std::uint32_t index : indices) {
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
  request.category = declaration(indices[0]).category;
  return pool_.allocate(request, std::move(composition));
}

void SessionVariables::lay_out(std::span<const std::uint32_t> indices,
                               const memory::Block* block) noexcept {
  if (!block) return;
  reserved_bytes_ += runtime_.profile().in_pages(block->allocated_bytes());
  std::size_t offset = 0;
  for (const std::uint32_t index : indices) {
    values_[index] = {block, offset, true, false};
    offset += rounded_bytes(declaration(index));
    const bool is_parameter = declaration(index).category == Category::parameter;
    (is_parameter ? parameter_bytes_ : slot_bytes_) += rounded_bytes(declaration(index));
  }
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
    draw_initial_values(variable.initializer, variable.seed, variable.name, variable.spec, values);
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

void SessionVariables::require_whole(std::span<const std::uint32_t> indices) const {
  for (const std::uint32_t index : indices)
    if (has_memory(index) && values_[index].torn_by)
      refuse("run",
             "variable '" + declaration(index).name + "' was being updated by " +
                 values_[index].torn_by +
                 " when a run failed, and may hold half a step; assign, initialize or restore it");
}

}  // namespace ebb::detail
