#include "ebb/core/memory/page.h"

#include <spdlog/fmt/fmt.h>

#include <functional>
#include <iterator>
#include <sstream>

#include "ebb/core/device/runtime.h"
#include "ebb/core/device/world_state.h"
#include "ebb/core/memory/comparison.h"
#include "ebb/core/memory/json.h"
#include "ebb/core/memory/recording.h"
#include "ebb/core/memory/timeline.h"

namespace ebb::memory {

namespace detail {
namespace {

constexpr std::size_t kMostBytes = 4'000'000;  // aimed at, of all runs

// "[value(x),value(y)...]"
template <class Range, class Value = std::identity>
std::string array(const Range& range, const Value& value = {}) {
  std::string text = "[";
  for (const auto& each : range)
    fmt::format_to(std::back_inserter(text), "{}{}", text.size() > 1 ? "," : "", value(each));
  return text + "]";
}

std::string text_of_tag(const Tag& tag) {
  return fmt::format("[{},{},{},{}]", json_string(tag.operator_name), json_string(tag.file),
                     tag.line, json_string(tag.layer));
}

std::string text_of_piece(const Timeline::Piece& piece) {
  return fmt::format("[{},{},{},{},{}]", piece.address, piece.bytes, piece.category, piece.tag,
                     piece.blocks);
}

std::string text_of_pattern(const Timeline::Pattern& pattern) {
  return fmt::format(
      R"({{"codes":{},"thinned":{},"sample":{},"net":{},"peak":{},"peak_events":{}}})",
      array(pattern.codes), pattern.is_thinned, pattern.is_sample, array(pattern.net),
      array(pattern.peak), pattern.peak_events);
}

std::string text_of_span(const Timeline::Span& span) {
  return fmt::format("[{},{},{},{}]", span.pattern, span.name, span.steps, span.nanoseconds);
}

std::string text_of_buffer(const PlanDetails::Buffer& buffer) {
  return fmt::format("[{},{},{},{},{}]", buffer.offset, buffer.bytes, buffer.first, buffer.last,
                     static_cast<int>(buffer.category));
}

std::string text_of_plan(const Plan& plan) {
  std::ostringstream figures;
  figures << plan;
  const PlanDetails details = plan.details ? *plan.details : PlanDetails{};
  const auto text_of_step = [](const auto& step) { return text_of_tag(step.tag); };
  return fmt::format(
      R"({{"peak_bytes":{},"arena_bytes":{},"lower_bound_bytes":{},"text":{},"steps":{},)"
      R"("buffers":{}}})",
      plan.peak_bytes, plan.arena_bytes, plan.lower_bound_bytes, json_string(figures.str()),
      array(details.steps, text_of_step), array(details.buffers, text_of_buffer));
}

PageRun page_run(const Measurement& run, const std::string& prefix = {}) {
  return {.name = prefix + run.name,
          .log = run.log,
          .is_relative = true,
          .predicted_peak_bytes = run.predicted.peak_bytes,
          .plans = run.plans};
}

std::string text_of_run(const PageRun& run, std::size_t most_bytes) {
  if (!run.data.empty()) return run.data;
  const EventLog::Reading reading = run.log ? run.log->read() : EventLog::Reading{};
  const Timeline timeline = pack(reading, most_bytes);
  return fmt::format(
      R"({{"name":{},"began":{},"is_relative":{},"predicted_peak_bytes":{},"before":{},"tags":{},)"
      R"("names":{},"pieces":{},"patterns":{},"spans":{},"plans":{}}})",
      json_string(run.name), reading.began, run.is_relative, run.predicted_peak_bytes,
      array(timeline.before), array(timeline.tags, text_of_tag), array(timeline.names, json_string),
      array(timeline.pieces, text_of_piece), array(timeline.patterns, text_of_pattern),
      array(timeline.spans, text_of_span), array(run.plans, text_of_plan));
}

// Throws FileError.
void write_page(const std::string& path, const std::string& title, const Device* device,
                const std::vector<PageRun>& runs) {
  PieceFile file(path);
  file.text() = page_of(page_data(title, device, runs));
  file.commit();
}

}  // namespace

std::string page_data(const std::string& title, const Device* device, std::span<const PageRun> runs,
                      bool is_live) {
  std::vector<std::string> categories;
  for (std::size_t i = 0; i < kCategoryCount; ++i)
    categories.push_back(json_string(name(static_cast<Category>(i))));
  std::string text = fmt::format(R"({{"live":{},"title":{},)", is_live, json_string(title));
  if (device) {
    const CachingAllocator& allocator = device->runtime().allocator();
    const std::size_t limit = allocator.limit_bytes();
    text += fmt::format(R"("device":{},"capacity_bytes":{},"limit_bytes":{},)",
                        json_string(device->name()), allocator.capacity_bytes(),
                        limit == kNoLimit ? 0 : limit);
  }
  const auto text_of_each = [&](const PageRun& run) {
    return text_of_run(run, kMostBytes / runs.size());
  };
  return text + fmt::format(R"("categories":{},"runs":{}}})", array(categories),
                            array(runs, text_of_each));
}

std::string page_of(std::string data) {
  // In a script element, "</script" in a name would end it, and "<!--<script" the page.
  for (std::size_t at = 0; (at = data.find('<', at)) != data.npos;) data.replace(at, 1, "\\u003c");
  return std::string(kPageHead) + data + std::string(kPageTail);
}

}  // namespace detail

void Recording::write_html(const std::string& path) const {
  detail::write_page(path, "Memory of " + device_.name(), &device_,
                     {{.name = "recording", .log = log_}});
}

void Comparison::write_html(
    const std::string& path,
    std::initializer_list<std::reference_wrapper<const Comparison>> beside) const {
  std::vector<detail::PageRun> runs;
  const auto add = [&](const Comparison& comparison) {
    comparison.for_each_run([&](const Measurement& run) { runs.push_back(detail::page_run(run)); });
  };
  add(*this);
  for (const Comparison& each : beside) add(each);
  detail::write_page(path, "Memory of programs on " + device_.name(), &device_, runs);
}

void Comparison::write_html(const std::string& path, const distributed::World& ranks) const {
  const std::string prefix = "rank " + std::to_string(ranks.rank()) + ": ";
  const std::size_t most = detail::kMostBytes / static_cast<std::size_t>(ranks.size());
  std::string mine;
  for_each_run([&](const Measurement& run) {
    mine +=
        (mine.empty() ? "" : ",") + detail::text_of_run(detail::page_run(run, prefix),
                                                        most / (results_.size() + failed_.size()));
  });
  std::vector<detail::PageRun> runs;
  for (std::string& data : ranks.state().gather("write_html", mine))
    if (!data.empty()) runs.emplace_back().data = std::move(data);
  if (ranks.rank() == 0) detail::write_page(path, "Memory of ranks", &device_, runs);
}

void Plan::write_html(const std::string& path) const {
  detail::write_page(path, "A plan", nullptr, {{.name = "plan", .plans = {this, 1}}});
}

}  // namespace ebb::memory
