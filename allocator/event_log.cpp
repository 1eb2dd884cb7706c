#include "ebb/allocator/event_log.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <new>
#include <numeric>

#include "ebb/allocator/error.h"

namespace ebb::memory {

std::size_t Held::allocated_bytes() const noexcept {
  return std::accumulate(allocated.begin(), allocated.end(), std::size_t{0});
}

void Held::apply(const Event& event) noexcept {
  std::size_t& of_category = allocated[static_cast<std::size_t>(event.category)];
  const EventKind kind = event.kind;
  if (kind == EventKind::recategorise)
    allocated[static_cast<std::size_t>(event.before)] -= event.bytes;
  if (kind == EventKind::allocate || kind == EventKind::recategorise) of_category += event.bytes;
  if (kind == EventKind::free) of_category -= event.bytes;
  if (kind == EventKind::map) reserved += event.bytes;
  if (kind == EventKind::unmap) reserved -= event.bytes;
}

void Sample::add(const Event& event) noexcept {
  if (events++ == 0) begin = event.nanoseconds;
  end = event.nanoseconds;
  after.apply(event);
  if (event.kind == EventKind::step) ++steps;
  if (event.kind == EventKind::map) peak_reserved = std::max(peak_reserved, after.reserved);
  if (event.kind != EventKind::allocate) return;
  const std::size_t allocated = after.allocated_bytes();
  if (allocated > peak.bytes) peak = {allocated, after.allocated};
}

void Sample::add(const Sample& next) noexcept {
  end = next.end;
  events += next.events;
  steps += next.steps;
  if (next.peak.bytes > peak.bytes) peak = next.peak;
  peak_reserved = std::max(peak_reserved, next.peak_reserved);
  after = next.after;
}

namespace {
Sample sample_from(const Held& held) noexcept {
  return {.peak = {held.allocated_bytes(), held.allocated},
          .peak_reserved = held.reserved,
          .after = held};
}

// The kernel takes the counter of an x86 processor for its own clock where it runs evenly and alike
// on all of them. It is read in 9 ns, and a clock in 21.
bool has_even_counter() {
  std::string clock;
  std::ifstream("/sys/devices/system/clocksource/clocksource0/current_clocksource") >> clock;
  return clock == "tsc";
}

std::int64_t nanoseconds() noexcept {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}
}  // namespace

EventLog::EventLog(std::size_t max_events)
    : max_events_(max_events),
      counts_(has_even_counter()),
      start_(ticks()),
      started_at_(nanoseconds()),
      began_(std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch())
                 .count()) {
  if (max_events == 0) throw Error("a recording needs room for at least one event");
  samples_.reserve(kSamples);
  marks_.reserve(kMostMarks);
}

void EventLog::begin(const Held& held, std::shared_ptr<Mutex> lock) noexcept {
  lock_ = std::move(lock);
  start_held_ = held;
  open_ = sample_from(held);
}

std::int64_t EventLog::ticks() const noexcept {
#if defined(__x86_64__)
  if (counts_) return static_cast<std::int64_t>(__builtin_ia32_rdtsc());
#endif
  return nanoseconds();
}

void EventLog::add(EventKind kind, const void* address, const ByCategory& split,
                   const Tag& tag) noexcept {
  for (std::size_t i = 0; i < kCategoryCount; ++i)
    if (split[i] > 0) add(kind, address, split[i], static_cast<Category>(i), tag);
}

void EventLog::mark(std::string_view name) noexcept {
  const Guard lock(*lock_);
  Tag tag;
  try {
    if (names_.size() < kMostMarks || names_.contains(name))
      tag.operator_name = names_.emplace(name).first->c_str();
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the name is left out
  }
  append({.tag = index_of(tag), .kind = EventKind::mark});
}

void EventLog::step() noexcept {
  const Guard lock(*lock_);
  append({.kind = EventKind::step});
}

void EventLog::append(Event event) noexcept {
  event.nanoseconds = last_ = std::max(last_, ticks() - start_);
  if (!has_room()) return condense(event);  // as it is older than every kept event
  (*chunks_.back())[used_++] = event;
  ++count_;
}

// Finds the tag's slot, or the free one where it belongs. Compares texts by their addresses.
std::uint32_t& EventLog::slot_of(const Tag& tag) noexcept {
  std::size_t hash = tag.line;
  for (const char* text : {tag.operator_name, tag.file, tag.layer})
    hash = (hash ^ reinterpret_cast<std::uintptr_t>(text)) * 0x9E3779B97F4A7C15;
  for (hash ^= hash >> 32;; ++hash) {
    std::uint32_t& index = slots_[hash & (slots_.size() - 1)];
    if (index == 0 || tags_[index] == tag) return index;
  }
}

// The empty tag is the first. Without memory for a new one, the event has it.
std::uint32_t EventLog::index_of(const Tag& tag) noexcept {
  if (const std::uint32_t known = slot_of(tag)) [[likely]]
    return known;
  if (*tag.operator_name == 0 && *tag.file == 0 && tag.line == 0 && *tag.layer == 0) return 0;
  try {
    if (slots_.size() < 2 * tags_.size()) {
      slots_ = std::vector<std::uint32_t>(2 * slots_.size());
      for (std::uint32_t i = 1; i < tags_.size(); ++i) slot_of(tags_[i]) = i;
    }
    tags_.push_back(tag);
    return slot_of(tag) = static_cast<std::uint32_t>(tags_.size() - 1);
  } catch (const std::bad_alloc&) {
    return 0;
  }
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
  condense((*chunks_.front())[first_++]);
  --count_;
  if (first_ < kChunk) return;
  chunks_.pop_front();
  first_ = 0;
}

// When there are kSamples, each takes in its neighbour, and later ones span as much.
void EventLog::condense(const Event& event) noexcept {
  if (open_.events == span_) {
    samples_.push_back(open_);
    open_ = sample_from(open_.after);
  }
  if (samples_.size() == kSamples) {
    for (std::size_t i = 0; i < kSamples / 2; ++i) {
      samples_[i] = samples_[2 * i];
      samples_[i].add(samples_[2 * i + 1]);
    }
    samples_.resize(kSamples / 2);
    span_ *= 2;
  }
  open_.add(event);
  ++dropped_;
  if (event.kind == EventKind::mark && marks_.size() < kMostMarks) marks_.push_back(event);
}

EventLog::Reading EventLog::read() const {
  Reading reading;
  std::deque<std::shared_ptr<Chunk>> chunks;
  std::size_t first = 0, count = 0;
  double per_tick = 1;  // nanoseconds
  {
    const Guard lock(*lock_);
    per_tick = static_cast<double>(nanoseconds() - started_at_) /
               static_cast<double>(std::max({last_, ticks() - start_, std::int64_t{1}}));
    reading.samples = samples_;
    if (open_.events > 0) reading.samples.push_back(open_);
    reading.marks = marks_;
    reading.began = began_;
    reading.start = start_held_;
    reading.before = open_.after;
    reading.dropped = dropped_;
    reading.tags = tags_;
    chunks = chunks_;
    first = first_;
    count = count_;
  }
  reading.events.reserve(count);
  for (const auto& chunk : chunks) {
    const std::size_t here = std::min(count, kChunk - first);
    const Event* from = chunk->data() + first;
    reading.events.insert(reading.events.end(), from, from + here);
    count -= here;
    first = 0;
  }
  const auto convert = [&](std::int64_t& ticks) {
    ticks = static_cast<std::int64_t>(static_cast<double>(ticks) * per_tick);
  };
  for (Event& event : reading.events) convert(event.nanoseconds);
  for (Event& mark : reading.marks) convert(mark.nanoseconds);
  for (Sample& sample : reading.samples) {
    convert(sample.begin);
    convert(sample.end);
  }
  return reading;
}

std::size_t EventLog::dropped() const noexcept {
  const Guard lock(*lock_);
  return dropped_;
}

}  // namespace ebb::memory
