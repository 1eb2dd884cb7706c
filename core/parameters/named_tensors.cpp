#include "ebb/core/parameters/named_tensors.h"

#include <algorithm>

#include "ebb/core/base/error.h"

namespace ebb::detail {

std::size_t NamedTensors::position(std::string_view name) const noexcept {
  const auto found = positions_.find(name);
  return found == positions_.end() ? kNone : found->second;
}

const Tensor* NamedTensors::find(std::string_view name) const noexcept {
  const std::size_t at = position(name);
  return at == kNone ? nullptr : &all_[at].tensor;
}

const NamedTensors::Part& NamedTensors::part(std::string_view prefix) {
  const std::lock_guard lock(parts_mutex_);
  auto found = parts_.find(prefix);
  if (found == parts_.end()) found = parts_.emplace(prefix, Part()).first;
  Part& part = found->second;
  for (; part.seen < all_.size(); ++part.seen) {
    const NamedTensor& tensor = all_[part.seen];
    if (!tensor.name.starts_with(prefix)) continue;
    part.positions.push_back(part.seen);
    try {
      part.tensors.push_back(tensor);
      part.tensors.back().prefix_bytes_ = prefix.size();
    } catch (...) {
      part.positions.pop_back();
      throw;
    }
  }
  return part;
}

void NamedTensors::add(std::vector<NamedTensor> tensors) {
  const std::size_t before = all_.size();
  try {
    for (NamedTensor& tensor : tensors) {
      all_.push_back(std::move(tensor));
      const std::string& name = all_.back().name;
      if (!positions_.emplace(name, all_.size() - 1).second)
        refuse("parameters", "there is a \"" + name + "\" already");
    }
  } catch (...) {
    shrink(before);
    throw;
  }
}

void NamedTensors::shrink(std::size_t count) noexcept {
  while (all_.size() > count) {
    const auto found = positions_.find(all_.back().name);
    if (found != positions_.end() && found->second == all_.size() - 1) positions_.erase(found);
    all_.pop_back();
  }
  for (auto& [prefix, part] : parts_) {
    while (!part.positions.empty() && part.positions.back() >= count) {
      part.positions.pop_back();
      part.tensors.pop_back();
    }
    part.seen = std::min(part.seen, count);
  }
}

}  // namespace ebb::detail
