#include "ebb/core/memory/summary.h"

#include <algorithm>
#include <ostream>

#include "ebb/core/base/formatted.h"
#include "ebb/core/device/host_bytes.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/figures.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/memory/plan.h"
#include "ebb/core/memory/predict.h"

namespace ebb::memory {

namespace {

constexpr std::size_t kColumns = 80, kLabel = 19, kFigure = 12;

std::string left(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

std::string right(const std::string& text, std::size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

template <class... Texts>
std::string line(const std::string& label, const Texts&... texts) {
  return left(label, kLabel) + (right(texts, kFigure) + ...) + "\n";
}

// The share of the rest that an extra makes: "12.5 %".
std::string share(std::size_t extra, std::size_t all) {
  const std::size_t rest = all - extra, tenths = rest == 0 ? 0 : (1000 * extra + rest / 2) / rest;
  return std::to_string(tenths / 10) + "." + std::to_string(tenths % 10) + " %";
}

// `at_peak`: figure when most was allocated, where it is known.
std::string line(const std::string& label, const Figure& of, const std::string& at_peak = "") {
  return line(label, figure(of.current), at_peak, figure(of.peak), figure(of.total));
}

std::string label_of(std::size_t category) {
  std::string label = "  " + std::string(name(static_cast<Category>(category)));
  std::replace(label.begin(), label.end(), '_', ' ');
  return label;
}

std::string categories(const ByCategory& bytes) {
  std::string text;
  for (std::size_t i = 0; i < kCategoryCount; ++i)
    if (bytes[i] != 0) text += line(label_of(i), figure(bytes[i]));
  return text;
}

std::string categories(const Stats& stats) {
  std::string text;
  for (std::size_t i = 0; i < kCategoryCount; ++i) {
    const Figure& of = stats.by_category[i];
    if (of.total > 0) text += line(label_of(i), of, figure(stats.at_peak[i]));
  }
  return text;
}

std::string holder(const std::string& bytes, const std::string& blocks, const Tag& tag) {
  std::string text = right(bytes, kFigure) + right(blocks, 8) + "  " +
                     (*tag.operator_name ? tag.operator_name : "unnamed");
  if (*tag.file && text.size() + 8 < kColumns)
    text += "  " + source_line(tag, kColumns - 2 - text.size());
  return text.substr(0, kColumns) + "\n";
}

std::string counted(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// The peak as a multiple of its lower bound, to three decimals: "x 1.000".
std::string times(const Plan& plan) {
  const std::size_t bound = std::max<std::size_t>(plan.lower_bound_bytes, 1);
  return ebb::detail::formatted("x %.3f",
                                static_cast<double>(plan.peak_bytes) / static_cast<double>(bound));
}

}  // namespace

std::string summary(const Device& device, std::size_t most_holders) {
  Runtime& runtime = device.runtime();
  const CachingAllocator& allocator = runtime.allocator();
  const Stats stats = allocator.stats();
  const std::vector<Holder> holders = allocator.holders(most_holders);
  const std::string heading = "Memory of " + device.name();
  std::string text = heading.size() < kLabel ? "" : heading + "\n";
  text += line(text.empty() ? heading : "", std::string("now"), std::string("at the peak"),
               std::string("own peak"), std::string("ever taken"));
  text += line("requested", stats.requested);
  text += line("allocated", stats.allocated, figure(stats.allocated.peak));
  text += categories(stats);
  text += line("reserved", stats.reserved);
  if (runtime.staging() && runtime.staging()->stats().reserved.total > 0)
    text += line("page-locked (host)", runtime.staging()->stats().reserved);
  text += "\n" + left("device", kLabel) + figure(stats.device_free) + " free of " +
          figure(stats.device_total) +
          (stats.limit == kNoLimit ? ", no limit" : ", limit " + figure(stats.limit)) + "\n";
  text += left("", kLabel) + counted(stats.allocations, "block") + " alive, " +
          counted(stats.segments, "segment") + " reserved\n";
  if (runtime.is_host() && HostBytes::held() > 0)
    text += left("", kLabel) + "besides " + figure(HostBytes::held()) + " in copies of values\n";
  if (const std::size_t borrowed = runtime.borrowed_bytes(); borrowed > 0)
    text += left("", kLabel) + "besides " + figure(borrowed) + " borrowed from other libraries\n";
  if (holders.empty()) return text;
  text += "\n" + holder("held", "blocks", {"by"});
  for (const Holder& each : holders)
    text += holder(figure(each.bytes), std::to_string(each.blocks), each.tag);
  return text;
}

std::ostream& operator<<(std::ostream& out, const std::vector<GrownHolder>& grown) {
  if (grown.empty()) return out << "nothing has grown";
  std::string text = holder("more", "blocks", {"by"});
  for (const GrownHolder& each : grown)
    text += holder(change_figure(0, each.bytes),
                   ebb::detail::formatted("%+.0f", static_cast<double>(each.blocks)), each.tag);
  text.pop_back();
  return out << text;
}

std::ostream& operator<<(std::ostream& out, const Plan& plan) {
  std::string text =
      line("peak", figure(plan.peak_bytes)) + categories(plan.by_category) +
      line("arena", figure(plan.arena_bytes)) + line("reserved", figure(plan.reserved_bytes)) +
      line("lower bound", figure(plan.lower_bound_bytes), times(plan)) +
      line("without sharing", figure(plan.naive_bytes)) +
      (plan.captured_bytes > 0 ? line("captured, besides", figure(plan.captured_bytes)) : "") +
      line("nodes", std::to_string(plan.nodes));
  if (plan.unbudgeted_bytes > 0)
    text += line("without a budget", figure(plan.unbudgeted_bytes)) +
            (plan.is_reordered ? line("order of nodes", "changed") : "") +
            (plan.micro_batches > 1 ? line("micro-batches", std::to_string(plan.micro_batches),
                                           " of " + std::to_string(plan.micro_batch_rows) + " rows")
                                    : "") +
            line("nodes run again", std::to_string(plan.repeated_nodes)) +
            line("  more products", share(plan.extra_work.products, plan.work.products)) +
            line("  more bytes moved", share(plan.extra_work.moved_bytes, plan.work.moved_bytes));
  if (plan.moved_values > 0 || plan.host_state_bytes > 0)
    text += line("moved to the host", std::to_string(plan.moved_values)) +
            line("  bytes, both ways", figure(plan.moved_bytes)) +
            line("  optimizer state", figure(plan.host_state_bytes)) +
            line("  page-locked", figure(plan.page_locked_bytes));
  if (!plan.peak_node.empty()) text += left("most at", kLabel) + "  " + plan.peak_node + "\n";
  text.pop_back();
  return out << text;
}

std::ostream& operator<<(std::ostream& out, const Prediction& prediction) {
  const std::size_t least = prediction.least_limit_bytes, capacity = prediction.capacity_bytes;
  std::string text =
      line("peak", figure(prediction.peak_bytes)) + categories(prediction.by_category);
  if (!prediction.peak_node.empty())
    text += left("  most at", kLabel) + "  " + prediction.peak_node + "\n";
  text += line("reserved", figure(prediction.reserved_peak_bytes)) +
          line("least limit", figure(least)) +
          line("held at the end", figure(prediction.held_bytes)) +
          line("left on the device", figure(capacity));
  for (const ReadLine& read : prediction.reads)
    text += left("reads values", kLabel) + right(std::to_string(read.count), kFigure) + "  " +
            read.tag.operator_name +
            (*read.tag.file ? "  " + source_line(read.tag, kColumns / 2) : "") + "\n";
  if (prediction.fits) return out << text + "it fits";
  return out << text + "it does not fit" +
                    (least > capacity ? ": " + figure(least - capacity) + " are missing" : "");
}

}  // namespace ebb::memory
