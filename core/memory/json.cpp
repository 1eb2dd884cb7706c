// JSON of comparisons, figures, recordings and snapshots.
#include "ebb/core/memory/json.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "ebb/core/device/host_bytes.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/comparison.h"
#include "ebb/core/memory/summary.h"

namespace ebb::memory {

namespace {
using Json = nlohmann::ordered_json;

// Serialises; replaces bytes that are not UTF-8, which file names may contain.
std::string text_of(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// {category: value(index of the category)}
template <class Value>
Json by_category(const Value& value) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kCategoryCount; ++i) json[name(static_cast<Category>(i))] = value(i);
  return json;
}

template <class Kind>
Json names(std::size_t count) {
  Json json = Json::array();
  for (std::size_t i = 0; i < count; ++i) json.push_back(name(static_cast<Kind>(i)));
  return json;
}

Json to_json(const Footprint& footprint) {
  Json moments = Json::array();
  for (const Moment& moment : footprint.moments)
    moments.push_back({{"name", moment.name}, {"bytes", moment.bytes}});
  return {{"steps", footprint.steps},
          {"peak_bytes", footprint.peak_bytes},
          {"by_category", by_category([&](std::size_t i) { return footprint.by_category[i]; })},
          {"step_peak_bytes", footprint.step_peak_bytes},
          {"held_between_steps_bytes", footprint.held_between_steps_bytes},
          {"end_bytes", footprint.end_bytes},
          {"reserved_end_bytes", footprint.reserved_end_bytes},
          {"reserved_released_bytes", footprint.reserved_released_bytes},
          {"moments", moments}};
}

Json to_json(const Figure& figure) {
  return {{"current", figure.current}, {"peak", figure.peak}, {"total", figure.total}};
}

Json to_json(const Stats& stats) {
  Json limit;  // null
  if (stats.limit != kNoLimit) limit = stats.limit;
  const auto category = [&](std::size_t i) {
    Json json = to_json(stats.by_category[i]);
    json["at_peak"] = stats.at_peak[i];
    return json;
  };
  return {{"requested_bytes", to_json(stats.requested)},
          {"allocated_bytes", to_json(stats.allocated)},
          {"reserved_bytes", to_json(stats.reserved)},
          {"by_category", by_category(category)},
          {"device_free_bytes", stats.device_free},
          {"device_total_bytes", stats.device_total},
          {"limit_bytes", limit},
          {"allocations", stats.allocations},
          {"segments", stats.segments}};
}

Json to_json(const Tag& tag) {
  return {{"operator", tag.operator_name},
          {"file", tag.file},
          {"line", tag.line},
          {"layer", tag.layer}};
}

Json to_json(const std::vector<Holder>& holders) {
  Json list = Json::array();
  for (const Holder& holder : holders) {
    list.push_back(to_json(holder.tag));
    list.back().update({{"bytes", holder.bytes}, {"blocks", holder.blocks}});
  }
  return list;
}

const char* name(OutOfMemory::Reason reason) noexcept {
  constexpr const char* names[] = {"device_refused", "addresses", "device_limit", "pool_limit",
                                   "injected"};
  return names[static_cast<std::size_t>(reason)];
}
}  // namespace

std::string Comparison::json() const {
  Json programs = Json::array();
  for (const Measurement& result : results_) {
    Json measured;  // null
    if (!device_.is_simulated()) measured = to_json(result.measured);
    programs.push_back({{"name", result.name},
                        {"seconds", result.seconds},
                        {"fits", result.fits},
                        {"losses", result.losses},
                        {"predicted", to_json(result.predicted)},
                        {"measured", measured}});
  }
  return text_of({{"device", device_.name()},
                  {"capacity_bytes", device_.runtime().capacity_bytes()},
                  {"simulated", device_.is_simulated()},
                  {"programs", programs}},
                 2);
}

std::string summary_json(const Device& device) {
  Runtime& runtime = device.runtime();
  const CachingAllocator& allocator = runtime.allocator();
  Json document = {{"device", device.name()}, {"simulated", device.is_simulated()}};
  document.update(to_json(allocator.stats()));
  document["page_locked_bytes"] =
      to_json(runtime.staging() ? runtime.staging()->stats().reserved : Figure{});
  document["host_copies_bytes"] = runtime.is_host() ? HostBytes::held() : 0;
  document["borrowed_bytes"] = runtime.borrowed_bytes().load();
  document["holders"] = to_json(allocator.holders(kNoLimit));
  return text_of(document, 2);
}

// JSON escapes some of ASCII, and nothing beyond it. No other byte belongs to a character of ASCII.
std::string detail::utf8(std::string_view text) {
  const auto is_ascii = [](char byte) { return static_cast<signed char>(byte) >= 0; };
  std::string valid;
  for (auto at = text.begin(); at != text.end();) {
    const auto begin = at;
    at = std::find_if(at, text.end(), [&](char c) { return is_ascii(c) != is_ascii(*begin); });
    const std::string run(begin, at),
        quoted = is_ascii(*begin) ? '"' + run + '"' : json_string(run);
    valid.append(quoted, 1, quoted.size() - 2);
  }
  return valid;
}

std::string detail::json_string(std::string_view text) { return text_of(text, -1); }

void detail::write_recording(std::string_view device, const EventLog::Reading& reading,
                             PieceFile& file) {
  Json tags = Json::array(), samples = Json::array(), marks = Json::array();
  for (const Tag& tag : reading.tags) tags.push_back(to_json(tag));
  for (const Sample& sample : reading.samples)
    samples.push_back({sample.begin, sample.end, sample.events, sample.steps,
                       sample.peak.by_category, sample.peak_reserved, sample.after.allocated,
                       sample.after.reserved});
  for (const Event& mark : reading.marks) marks.push_back({mark.nanoseconds, mark.tag});
  const Json allocated = by_category([&](std::size_t i) { return reading.before.allocated[i]; });
  std::string text = text_of(
      {{"format", "ebb memory recording"},
       {"version", 2},
       {"device", device},
       {"kinds", names<EventKind>(kEventKindCount)},
       {"categories", names<Category>(kCategoryCount)},
       {"tags", tags},
       {"sample_columns",
        {"begin", "end", "events", "steps", "peak", "peak_reserved", "held", "reserved"}},
       {"samples", samples},
       {"mark_columns", {"nanoseconds", "tag"}},
       {"marks", marks},
       {"dropped", reading.dropped},
       {"before", {{"allocated_bytes", allocated}, {"reserved_bytes", reading.before.reserved}}},
       {"columns", {"nanoseconds", "kind", "address", "bytes", "category", "old_category", "tag"}}},
      -1);
  text.back() = ',';  // reopens the object
  file.text() += text + "\"events\":[";
  using std::to_string;
  const char* before = "\n[";
  for (const Event& event : reading.events)
    file.text() += std::exchange(before, ",\n[") + to_string(event.nanoseconds) + ',' +
                   to_string(static_cast<int>(event.kind)) + ',' +
                   to_string(reinterpret_cast<std::uintptr_t>(event.address)) + ',' +
                   to_string(event.bytes) + ',' + to_string(static_cast<int>(event.category)) +
                   ',' + to_string(static_cast<int>(event.before)) + ',' + to_string(event.tag) +
                   ']';
  file.text() += "]}\n";
}

void detail::write_snapshot(const OutOfMemory::Facts& facts, const std::vector<Holder>& holders,
                            const EventLog* recorder, PieceFile& file) {
  Json pool, pool_stats;  // null
  if (!facts.pool.empty()) pool = facts.pool;
  if (facts.pool_stats) pool_stats = to_json(*facts.pool_stats);
  Json request = {{"bytes", facts.request.bytes},
                  {"category", memory::name(facts.request.category)},
                  {"purpose", facts.request.purpose}};
  request.update(to_json(facts.request.tag));
  std::string text = text_of({{"format", "ebb out of memory"},
                              {"version", 1},
                              {"message", OutOfMemory(facts).what()},
                              {"reason", name(facts.reason)},
                              {"device", facts.device},
                              {"pool", pool},
                              {"request", request},
                              {"reserve_bytes", facts.reserve_bytes},
                              {"room_bytes", facts.room_bytes},
                              {"free_bytes", facts.fragmentation.free_bytes},
                              {"free_pieces", facts.fragmentation.free_pieces},
                              {"largest_free_bytes", facts.fragmentation.largest_free_bytes},
                              {"pinned_bytes", facts.fragmentation.pinned_bytes},
                              {"stats", to_json(facts.stats)},
                              {"pool_stats", pool_stats},
                              {"holders", to_json(holders)}},
                             2);
  text.resize(text.size() - 2);  // reopens the object
  file.text() += text + ",\n  \"recording\": ";
  if (recorder)
    write_recording(facts.device, recorder->read(), file);
  else
    file.text() += "null\n";
  file.text() += "}\n";
}

}  // namespace ebb::memory
