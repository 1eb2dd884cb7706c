#include "ebb/tests/device/deferred_order.h"

#include <algorithm>

namespace ebb::tests {

DeferredOrder::Clock& DeferredOrder::clock_of(std::size_t stream) {
  if (clocks_.size() < stream) clocks_.resize(stream);
  Clock& clock = clocks_[stream - 1];
  if (clock.size() < clocks_.size()) clock.resize(clocks_.size());
  return clock;
}

void DeferredOrder::merge(Clock& into, const Clock& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (std::size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

bool DeferredOrder::before(const Access& access, const Clock& clock) {
  return access.stream == 0 ||
         (access.stream <= clock.size() && access.number < clock[access.stream - 1]);
}

void DeferredOrder::wait(std::size_t stream, std::size_t other) {
  const Clock awaited = clock_of(other);
  merge(clock_of(stream), awaited);
}

void DeferredOrder::host_waited(std::size_t stream) { merge(host_, clock_of(stream)); }

void DeferredOrder::host_waited_for_all() {
  for (const Clock& clock : clocks_) merge(host_, clock);
}

DeferredOrder::Spans::iterator DeferredOrder::cut(std::uintptr_t at) {
  auto next = spans_.lower_bound(at);
  if (next == spans_.begin()) return next;
  const auto last = std::prev(next);
  if (last->second.end <= at) return next;
  Span rest = last->second;
  last->second.end = at;
  return spans_.emplace_hint(next, at, std::move(rest));
}

std::string DeferredOrder::use(std::size_t stream, const char* name, const std::vector<Use>& uses) {
  Clock& clock = clock_of(stream);
  merge(clock, host_);
  const auto misses = [&](const Access& access) { return !before(access, clock); };
  for (const Use& use : uses) {
    const auto begin = reinterpret_cast<std::uintptr_t>(use.address), end = begin + use.bytes;
    auto span = spans_.upper_bound(begin);
    if (span != spans_.begin()) --span;
    for (; span != spans_.end() && span->first < end; ++span) {
      if (span->second.end <= begin) continue;
      const Access* missed = misses(span->second.write) ? &span->second.write : nullptr;
      if (use.writes && !missed) {
        const auto& reads = span->second.reads;
        const auto read = std::find_if(reads.begin(), reads.end(), misses);
        if (read != reads.end()) missed = &*read;
      }
      if (missed)
        return std::string(name) + ": " + (use.writes ? "writes" : "reads") + " what " +
               missed->name + " of another stream " +
               (missed == &span->second.write ? "writes" : "reads") + ", and does not wait for it";
    }
  }
  const Access access{stream, clock[stream - 1]++, name};
  for (const Use& use : uses) {
    const auto begin = reinterpret_cast<std::uintptr_t>(use.address), end = begin + use.bytes;
    cut(begin);
    const auto after = cut(end);
    if (use.writes) {
      spans_.erase(spans_.lower_bound(begin), after);
      spans_.emplace(begin, Span{.end = end, .write = access});
      continue;
    }
    std::uintptr_t covered = begin;
    for (auto span = spans_.lower_bound(begin); span != after; ++span) {
      if (covered < span->first)
        spans_.emplace_hint(span, covered, Span{.end = span->first, .reads = {access}});
      auto& reads = span->second.reads;
      std::erase_if(reads, [&](const Access& read) { return read.stream == stream; });
      reads.push_back(access);
      covered = span->second.end;
    }
    if (covered < end) spans_.emplace(covered, Span{.end = end, .reads = {access}});
  }
  return {};
}

void DeferredOrder::forget(const void* base, std::size_t bytes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(base);
  cut(begin);
  const auto after = cut(begin + bytes);
  spans_.erase(spans_.lower_bound(begin), after);
}

}  // namespace ebb::tests
