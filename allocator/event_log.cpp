#include "ebb/allocator/event_log.h"

#include <algorithm>
#include <new>
#include <numeric>

#include "ebb/allocator/error.h"

namespace ebb::memory {

std::size_t Held::allocated_bytes() const noexcept {
  return std::accumulate(allocated.begin(), allocated.end(), std::size_t{0});
}

void Held::apply(const Event& event) noexcept {
  std::size_t& of_category = allocated[static_cast<std::size_t>(event.category)];
  switch (event.kind) {
    case EventKind::allocate:
      of_category += event.bytes;
      break;
    case EventKind::free:
      of_category -= event.bytes;
      break;
    case EventKind::recategorise:
      allocated[static_cast<std::size_t>(event.before)] -= event.bytes;
      of_category += event.bytes;
      break;
    case EventKind::map:
      reserved += event.bytes;
      break;
    case EventKind::unmap:
      reserved -= event.bytes;
      break;
    case EventKind::mark:
    case EventKind::step:
      break;
  }
}

EventLog::EventLog(std::size_t max_events)
    : max_events_(max_events), start_(std::chrono::steady_clock::now()) {
  if (max_events == 0) throw Error("a recording needs room for at least one event");
}

void EventLog::begin(const Held& held) noexcept {
  const Guard lock(mutex_);
  before_ = held;
}

std::int64_t EventLog::now() const noexcept {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() -
                                                              start_)
      .count();
}

void EventLog::append(EventKind kind, const void* address, std::size_t bytes, Category category,
                      Category before, const Tag& tag) noexcept {
  const Guard lock(mutex_);
  append({now(), address, bytes, tag.operator_name, tag.file, tag.line, kind, category, before});
}

void EventLog::add(EventKind kind, const void* address, const ByCategory& split,
                   const Tag& tag) noexcept {
  for (std::size_t i = 0; i < kCategoryCount; ++i) {
    if (split[i] > 0) add(kind, address, split[i], static_cast<Category>(i), tag);
  }
}

void EventLog::mark(std::string_view name) noexcept {
  const Guard lock(mutex_);
  try {
    if (!has_room()) throw std::bad_alloc();
    std::list<Names>& names = chunks_.back()->names;
    if (names.empty()) names.emplace_back();
    auto place = names.front().find(name);
    if (place == names.front().end()) place = names.front().emplace(name).first;
    append({.nanoseconds = now(), .operator_name = place->c_str(), .kind = EventKind::mark});
  } catch (const std::bad_alloc&) {
    ++dropped_;
  }
}

void EventLog::step() noexcept {
  const Guard lock(mutex_);
  append({.nanoseconds = now(), .kind = EventKind::step});
}

void EventLog::append(const Event& event) noexcept {
  if (!has_room()) {
    before_.apply(event);  // as it is older than every kept event
    ++dropped_;
    return;
  }
  chunks_.back()->events[used_++] = event;
  ++count_;
}

bool EventLog::has_room() noexcept {
  if (count_ == max_events_) drop_oldest();
  return used_ < kChunk || make_room();
}

// Drops old events if the host has no memory for a new chunk, so that the remaining ones have no
// gap.
bool EventLog::make_room() noexcept {
  while (true) {
    try {
      chunks_.push_back(std::make_shared<Chunk>());
      used_ = 0;
      return true;
    } catch (const std::bad_alloc&) {
      if (count_ == 0) return false;
      const std::size_t in_first = std::min(count_, kChunk - first_);
      for (std::size_t i = 0; i < in_first; ++i) drop_oldest();
    }
  }
}

void EventLog::drop_oldest() noexcept {
  Chunk& oldest = *chunks_.front();
  before_.apply(oldest.events[first_++]);
  --count_;
  ++dropped_;
  if (first_ < kChunk) return;
  if (oldest.was_read) names_.splice(names_.end(), oldest.names);
  chunks_.pop_front();
  first_ = 0;
}

EventLog::Reading EventLog::read() const {
  Reading reading;
  std::deque<std::shared_ptr<Chunk>> chunks;
  std::size_t first = 0, count = 0;
  {
    const Guard lock(mutex_);
    reading.before = before_;
    reading.dropped = dropped_;
    chunks = chunks_;
    for (const auto& chunk : chunks) chunk->was_read = true;
    first = first_;
    count = count_;
  }
  reading.events.reserve(count);
  for (const auto& chunk : chunks) {
    const std::size_t here = std::min(count, kChunk - first);
    const Event* from = chunk->events.data() + first;
    reading.events.insert(reading.events.end(), from, from + here);
    count -= here;
    first = 0;
  }
  return reading;
}

std::size_t EventLog::dropped() const noexcept {
  const Guard lock(mutex_);
  return dropped_;
}

}  // namespace ebb::memory
