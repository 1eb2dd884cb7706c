#include "ebb/allocator/error.h"

#include <algorithm>
#include <utility>

namespace ebb {
namespace {

using memory::format_bytes;
using memory::source_line;
using Reason = OutOfMemory::Reason;

constexpr std::size_t kIndent = 15, kColumns = 100;

// Formats a tag between two other parts of a row. A path that is too long loses its beginning.
std::string by(const std::string& before, const memory::Tag& tag, const std::string& after) {
  constexpr std::size_t kFewest = 20;
  std::string text =
      before + (*tag.operator_name ? tag.operator_name : "a request without an operator");
  if (!*tag.file) return text + after;
  const std::size_t taken = kIndent + text.size() + std::string(" ()").size() + after.size();
  const std::size_t left = kColumns - std::min(kColumns, taken);
  return text + " (" + source_line(tag, std::max(left, kFewest)) + ")" + after;
}

// Formats a labelled row, broken at commas where it would pass the last column.
std::string row(const std::string& label, std::string text) {
  std::string rows = "\n  " + label;
  rows.resize(1 + kIndent, ' ');
  while (text.size() > kColumns - kIndent) {
    const std::size_t comma = text.rfind(", ", kColumns - kIndent - 1);
    if (comma == std::string::npos) break;
    rows += text.substr(0, comma + 1) + "\n" + std::string(kIndent, ' ');
    text.erase(0, comma + 2);
  }
  return rows + text;
}

std::string counted(std::size_t count, const char* one, const char* many) {
  return std::to_string(count) + (count == 1 ? one : many);
}

std::string figures(const memory::Stats& stats) {
  return "reserved " + format_bytes(stats.reserved.current) +
         (stats.limit == memory::kNoLimit ? " (no limit)"
                                          : " (limit " + format_bytes(stats.limit) + ")") +
         ", allocated " + format_bytes(stats.allocated.current) + ", requested " +
         format_bytes(stats.requested.current);
}

std::string free_in(const memory::Fragmentation& parts) {
  if (parts.free_bytes == 0) return "nothing";
  std::string text =
      format_bytes(parts.free_bytes) + " in " + counted(parts.free_pieces, " piece", " pieces");
  if (parts.free_pieces > 1) text += ", the largest " + format_bytes(parts.largest_free_bytes);
  if (parts.pinned_bytes > 0)
    text += ", " + format_bytes(parts.pinned_bytes) + " of it in pages that live blocks use too";
  return text;
}

// Name of the pool in messages about its limit.
std::string owner(const OutOfMemory::Facts& facts) {
  return facts.pool == "compiled" ? "compiled step" : facts.pool;
}

std::string why(const OutOfMemory::Facts& facts) {
  const std::string more = format_bytes(facts.reserve_bytes) + " more";
  switch (facts.reason) {
    case Reason::device_refused:
      return facts.reserve_bytes == 0 ? "no device has so much"
                                      : "the device refused to give " + more;
    case Reason::addresses:
      return "no addresses are left to map " + more + " at (ulimit -v bounds a process's)";
    case Reason::device_limit:
      return "the device's limit leaves no room for " + more;
    case Reason::pool_limit:
      return "the " + owner(facts) + "'s limit leaves no room for " + more;
    case Reason::injected:
      return "a test made this allocation fail";
  }
  return {};
}

std::string way_out(const OutOfMemory::Facts& facts) {
  if (facts.reason == Reason::injected) return "nothing is wrong with the memory";
  // A smaller batch does not shrink parameters or optimizer state.
  const memory::Category category = facts.request.category;
  const std::string less = category == memory::Category::parameter ? "take a smaller model"
                           : category == memory::Category::optimizer_state
                               ? "take a smaller model, or an optimizer that keeps less"
                           : facts.fits_no_batch
                               ? "lower the peak (recompute, bf16, a smaller model)"
                               : "lower the peak (a smaller batch, optim::Accumulator over smaller "
                                 "micro-batches, recompute, a budget, bf16)";
  const std::string close =
      facts.fragmentation.reserved_ahead_bytes > 0
          ? ", or free what is held (suspend or close sessions that preallocate, leave scopes)"
          : ", or free what is held (close sessions, leave scopes)";
  // Suggests a higher limit, if the device has that much.
  const auto raise = [&](const std::string& what, const memory::Stats& stats) -> std::string {
    const std::size_t bytes = stats.reserved.current + facts.reserve_bytes;
    if (bytes > stats.device_total) return "";
    return "raise the " + what + " to " + std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB, ";
  };
  if (facts.reason == Reason::addresses) return "raise ulimit -v, " + less + close;
  if (facts.reason == Reason::device_limit)
    return raise("limit (memory::set_limit)", facts.stats) + less + close;
  if (facts.reason == Reason::pool_limit)
    return raise(owner(facts) + "'s limit (" +
                     (facts.pool == "compiled" ? "CompileOptions"
                                               : "set_memory_limit, or its budget") +
                     ')',
                 *facts.pool_stats) +
           "or " + less;
  return less + close;
}

// "activation 200 MiB, parameter 12 MiB": largest first, empty categories left out.
std::string categories(const memory::Stats& stats) {
  std::array<std::pair<std::size_t, memory::Category>, memory::kCategoryCount> held;
  for (std::size_t i = 0; i < held.size(); ++i) {
    held[i] = {stats.by_category[i].current, static_cast<memory::Category>(i)};
  }
  std::ranges::stable_sort(held, [](const auto& a, const auto& b) { return a.first > b.first; });
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
  if (!facts.pool.empty()) text += ", " + facts.pool;
  text += ": no room for " + format_bytes(facts.request.bytes);
  text += row("asked by",
              by("", facts.request.tag, std::string(" as ") + name(facts.request.category)));
  if (*facts.request.purpose) text += row("for", facts.request.purpose);
  text += row("why", why(facts));
  text += row("device",
              format_bytes(stats.device_free) + " free of " + format_bytes(stats.device_total));
  text += row("held", figures(stats));
  if (facts.pool_stats) text += row("by " + facts.pool, figures(*facts.pool_stats));
  text += row("cached", free_in(facts.fragmentation));
  if (const std::size_t ahead = facts.fragmentation.reserved_ahead_bytes)
    text += row("ahead", format_bytes(ahead) + " reserved by sessions that preallocate");
  text += row("by category", categories(stats));
  const char* label = "by line";
  for (const memory::Holder& holder : facts.holders) {
    const std::string held =
        format_bytes(holder.bytes) + " in " + counted(holder.blocks, " block by ", " blocks by ");
    text += row(label, by(held, holder.tag, ""));
    label = "";
  }
  if (facts.reason != Reason::injected)
    text += row("would fit", "at most " + format_bytes(facts.room_bytes) + " in one request");
  for (const std::string& hint : facts.hints) text += row("", hint);
  return text + row("way out", way_out(facts));
}

}  // namespace

OutOfMemory::OutOfMemory(Facts facts)
    : Error(message(facts)), facts_(std::make_shared<const Facts>(std::move(facts))) {}

std::size_t OutOfMemory::limit_bytes() const noexcept {
  return facts_->reason == Reason::pool_limit ? facts_->pool_stats->limit : facts_->stats.limit;
}

}  // namespace ebb
