#include "ebb/allocator/error.h"

#include <algorithm>
#include <array>
#include <utility>

namespace ebb {
namespace {

using memory::format_bytes;
using Reason = OutOfMemory::Reason;

std::string describe(const memory::Tag& tag) {
  std::string text = *tag.operator_name ? tag.operator_name : "an unnamed request";
  if (*tag.file) text += " (" + std::string(tag.file) + ":" + std::to_string(tag.line) + ")";
  return text;
}

// A labelled row, broken at its commas where it would pass the last column.
std::string row(const char* label, std::string text) {
  constexpr std::size_t kIndent = 15, kColumns = 100;
  std::string rows = "\n  " + std::string(label);
  rows.resize(1 + kIndent, ' ');
  while (text.size() > kColumns - kIndent) {
    const std::size_t comma = text.rfind(", ", kColumns - kIndent - 1);
    if (comma == std::string::npos) break;
    rows += text.substr(0, comma + 1) + "\n" + std::string(kIndent, ' ');
    text.erase(0, comma + 2);
  }
  return rows + text;
}

std::string limit_of(const memory::Stats& stats) {
  return stats.limit == memory::kNoLimit ? "no limit" : "limit " + format_bytes(stats.limit);
}

std::string figures(const memory::Stats& stats) {
  return "reserved " + format_bytes(stats.reserved.current) + " (" + limit_of(stats) +
         "), allocated " + format_bytes(stats.allocated.current) + ", requested " +
         format_bytes(stats.requested.current);
}

std::string why(const OutOfMemory::Facts& facts) {
  const std::string segment = "a segment of " + format_bytes(facts.segment_bytes);
  switch (facts.reason) {
    case Reason::device_refused:
      return facts.segment_bytes == 0 ? "no device has so much" : "the device refused " + segment;
    case Reason::device_limit:
      return "the device's limit leaves no room for " + segment;
    case Reason::pool_limit:
      return "the pool's limit leaves no room for " + segment;
    case Reason::injected:
      return "a test made this allocation fail";
  }
  return {};
}

std::string way_out(const OutOfMemory::Facts& facts) {
  if (facts.reason == Reason::injected) return "nothing is wrong with the memory";
  const std::string less = "lower the peak: smaller batch, gradient accumulation, recompute";
  return facts.reason == Reason::device_refused ? less : "raise the limit, or " + less;
}

// "activation 200 MiB, parameter 12 MiB": largest first, none that are empty.
std::string categories(const memory::Stats& stats) {
  std::array<std::pair<std::size_t, memory::Category>, memory::kCategoryCount> held;
  for (std::size_t i = 0; i < held.size(); ++i) {
    held[i] = {stats.by_category[i].current, static_cast<memory::Category>(i)};
  }
  std::stable_sort(held.begin(), held.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [bytes, category] : held) {
    if (bytes == 0) break;
    text += (text.empty() ? "" : ", ") + std::string(name(category)) + " " + format_bytes(bytes);
  }
  return text.empty() ? "nothing" : text;
}

std::string message(const OutOfMemory::Facts& facts) {
  const memory::Stats& stats = facts.stats;
  std::string text = "out of memory on " + facts.device;
  if (!facts.pool.empty()) text += ", pool " + facts.pool;
  text += ": no room for " + format_bytes(facts.request.bytes);
  text += row("asked by", describe(facts.request.tag) + " as " + name(facts.request.category));
  text += row("why", why(facts));
  text += row("device",
              format_bytes(stats.device_free) + " free of " + format_bytes(stats.device_total));
  text += row("held", figures(stats));
  if (facts.pool_stats) text += row("pool", figures(*facts.pool_stats));
  text += row("by category", categories(stats));
  const char* label = "by tag";
  for (const memory::Holder& holder : facts.holders) {
    text +=
        row(label, format_bytes(holder.bytes) + " in " + std::to_string(holder.blocks) +
                       (holder.blocks == 1 ? " block by " : " blocks by ") + describe(holder.tag));
    label = "";
  }
  return text + row("way out", way_out(facts));
}

}  // namespace

OutOfMemory::OutOfMemory(Facts facts)
    : Error(message(facts)), facts_(std::make_shared<const Facts>(std::move(facts))) {}

std::size_t OutOfMemory::limit_bytes() const noexcept {
  return facts_->reason == Reason::pool_limit ? facts_->pool_stats->limit : facts_->stats.limit;
}

}  // namespace ebb
