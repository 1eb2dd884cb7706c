#include <nlohmann/json.hpp>

#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/snapshot.h"
#include "ebb/core/memory/summary.h"

namespace ebb::memory {

namespace {
using Json = nlohmann::ordered_json;

Json to_json(const Figure& figure) {
  return {{"current", figure.current}, {"peak", figure.peak}, {"total", figure.total}};
}

Json to_json(const Stats& stats) {
  Json by_category = Json::object();
  for (std::size_t i = 0; i < kCategoryCount; ++i) {
    Json& category = by_category[name(static_cast<Category>(i))];
    category = to_json(stats.by_category[i]);
    category["at_peak"] = stats.at_peak[i];
  }
  Json limit;  // null
  if (stats.limit != kNoLimit) limit = stats.limit;
  return {{"requested_bytes", to_json(stats.requested)},
          {"allocated_bytes", to_json(stats.allocated)},
          {"reserved_bytes", to_json(stats.reserved)},
          {"by_category", by_category},
          {"device_free_bytes", stats.device_free},
          {"device_total_bytes", stats.device_total},
          {"limit_bytes", limit},
          {"allocations", stats.allocations},
          {"segments", stats.segments}};
}

Json to_json(const std::vector<Holder>& holders) {
  Json list = Json::array();
  for (const Holder& holder : holders)
    list.push_back({{"operator", holder.tag.operator_name},
                    {"file", holder.tag.file},
                    {"line", holder.tag.line},
                    {"bytes", holder.bytes},
                    {"blocks", holder.blocks}});
  return list;
}

const char* name(OutOfMemory::Reason reason) noexcept {
  switch (reason) {
    case OutOfMemory::Reason::device_refused:
      return "device_refused";
    case OutOfMemory::Reason::addresses:
      return "addresses";
    case OutOfMemory::Reason::device_limit:
      return "device_limit";
    case OutOfMemory::Reason::pool_limit:
      return "pool_limit";
    case OutOfMemory::Reason::injected:
      return "injected";
  }
  return "unknown";
}

// Whatever a file is called.
std::string text_of(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}
}  // namespace

std::string summary_json(const Device& device) {
  const CachingAllocator& allocator = device.runtime().allocator();
  Json document = {{"device", device.name()}, {"simulated", device.is_simulated()}};
  document.update(to_json(allocator.stats()));
  document["holders"] = to_json(allocator.holders(kNoLimit));
  return text_of(document);
}

std::string detail::out_of_memory_json(const OutOfMemory::Facts& facts,
                                       const std::vector<Holder>& holders) {
  Json pool, pool_stats;  // null
  if (!facts.pool.empty()) pool = facts.pool;
  if (facts.pool_stats) pool_stats = to_json(*facts.pool_stats);
  const Request& request = facts.request;
  return text_of({{"format", "ebb out of memory"},
                  {"version", 1},
                  {"message", OutOfMemory(facts).what()},
                  {"reason", name(facts.reason)},
                  {"device", facts.device},
                  {"pool", pool},
                  {"request",
                   {{"bytes", request.bytes},
                    {"category", memory::name(request.category)},
                    {"purpose", request.purpose},
                    {"operator", request.tag.operator_name},
                    {"file", request.tag.file},
                    {"line", request.tag.line}}},
                  {"reserve_bytes", facts.reserve_bytes},
                  {"room_bytes", facts.room_bytes},
                  {"free_bytes", facts.fragmentation.free_bytes},
                  {"free_pieces", facts.fragmentation.free_pieces},
                  {"largest_free_bytes", facts.fragmentation.largest_free_bytes},
                  {"pinned_bytes", facts.fragmentation.pinned_bytes},
                  {"stats", to_json(facts.stats)},
                  {"pool_stats", pool_stats},
                  {"holders", to_json(holders)}});
}

}  // namespace ebb::memory
