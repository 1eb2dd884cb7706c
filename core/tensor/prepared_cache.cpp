#include "ebb/core/tensor/prepared_cache.h"

#include <algorithm>

#include "ebb/core/kernels/tf32.h"

namespace ebb::detail {

namespace {

using Key = std::vector<std::uint64_t>;

void add_specs(Key& key, std::span<const Spec> specs) {
  key.push_back(specs.size());
  for (const Spec& spec : specs) {
    key.push_back(static_cast<std::uint64_t>(spec.dtype) << 32 |
                  static_cast<std::uint64_t>(spec.shape.rank()));
    for (const std::int64_t dim : spec.shape.dims()) key.push_back(static_cast<std::uint64_t>(dim));
  }
}

template <class Holds>
void add_set(Key& key, std::size_t count, const Holds& holds) {
  for (std::size_t i = 0; i < count; i += 64) {
    std::uint64_t word = 0;
    for (std::size_t j = i; j < std::min(count, i + 64); ++j)
      word |= std::uint64_t{holds(j)} << (j - i);
    key.push_back(word);
  }
}

}  // namespace

std::size_t PreparedCache::KeyHash::operator()(const Key& key) const noexcept {
  std::uint64_t hash = key.size();
  for (const std::uint64_t word : key) hash = (hash ^ word) * 0x9E3779B97F4A7C15 ^ hash >> 29;
  return hash;
}

PreparedCache::Key PreparedCache::key_of(const Runtime& runtime, const DeviceKernel& kernel,
                                         const MemoryQuery& query) {
  Key key = {reinterpret_cast<std::uint64_t>(kernel.prepare), runtime.serial(), is_tf32_allowed(),
             query.workspace_bytes};
  add_set(key, query.inputs.size(), [&](std::size_t i) { return query.destroys(i); });
  add_set(key, query.outputs.size(), [&](std::size_t i) { return query.wants(i); });
  for (const std::uint64_t word : query.attributes->words()) key.push_back(word);
  add_specs(key, query.inputs);
  add_specs(key, query.outputs);
  return key;
}

Ref<Prepared> PreparedCache::find_or_prepare(const Runtime& runtime, const OpDef& op,
                                             const DeviceKernel& kernel, const MemoryQuery& query) {
  Key key = key_of(runtime, kernel, query);
  if (const auto found = places_.find(key); found != places_.end()) {
    entries_.splice(entries_.begin(), entries_, found->second);
    return found->second->prepared;
  }
  std::list<Entry> added;
  added.push_front({key, prepare(op, kernel, query)});
  places_.emplace(std::move(key), added.begin());
  entries_.splice(entries_.begin(), added);
  if (entries_.size() > kMost) {
    places_.erase(entries_.back().key);
    entries_.pop_back();
  }
  return entries_.front().prepared;
}

}  // namespace ebb::detail
