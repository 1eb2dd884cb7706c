#include "ebb/core/memory/page.h"

#include <spdlog/fmt/fmt.h>

#include <iterator>
#include <string_view>

#include "ebb/core/device/runtime.h"
#include "ebb/core/files/output_file.h"
#include "ebb/core/memory/comparison.h"
#include "ebb/core/memory/json.h"
#include "ebb/core/memory/page_assets.h"
#include "ebb/core/memory/recording.h"
#include "ebb/core/memory/timeline.h"

namespace ebb::memory {

namespace detail {
namespace {

constexpr std::size_t kMostBytes = 4'000'000;  // aimed at, of all runs

std::string text_of(const Tag& tag) {
  return fmt::format("[{},{},{},{}]", json_string(tag.operator_name), json_string(tag.file),
                     tag.line, json_string(tag.layer));
}

// "[f(x), f(y), ...]" of numbers.
template <class Range, class Value>
std::string array(const Range& range, const Value& value) {
  std::string text = "[";
  for (const auto& each : range)
    fmt::format_to(std::back_inserter(text), "{}{}", text.size() > 1 ? "," : "", value(each));
  return text + "]";
}

template <class Range>
std::string array(const Range& range) {
  return array(range, [](const auto& each) { return each; });
}

std::string text_of(const Timeline& timeline) {
  std::string text =
      fmt::format(R"("before":{},"tags":{},"names":{},"pieces":)", array(timeline.before),
                  array(timeline.tags, [](const Tag& tag) { return text_of(tag); }),
                  array(timeline.names, json_string));
  text += array(timeline.pieces, [](const Timeline::Piece& piece) {
    return fmt::format("[{},{},{},{}{}]", piece.address, piece.bytes, piece.category, piece.tag,
                       piece.blocks > 1 ? "," + std::to_string(piece.blocks) : "");
  });
  text +=
      ",\"patterns\":" + array(timeline.patterns, [](const Timeline::Pattern& pattern) {
        return fmt::format(
            R"({{"codes":{},"thinned":{},"sample":{},"net":{},"peak":{},"peak_events":{},"events":{}}})",
            array(pattern.codes), pattern.is_thinned, pattern.is_sample, array(pattern.net),
            array(pattern.peak), pattern.peak_events, pattern.events);
      });
  const auto of_spans = [&](const char* name, auto Timeline::Span::*member) {
    text += fmt::format(",\"{}\":{}", name, array(timeline.spans, [&](const Timeline::Span& span) {
                          return span.*member;
                        }));
  };
  of_spans("span_patterns", &Timeline::Span::pattern);
  of_spans("span_names", &Timeline::Span::name);
  of_spans("span_steps", &Timeline::Span::steps);
  of_spans("span_nanoseconds", &Timeline::Span::nanoseconds);
  return text;
}

std::string text_of(const Plan& plan) {
  std::string text = fmt::format(
      R"({{"peak_bytes":{},"parameter_bytes":{},"optimizer_state_bytes":{},"feed_bytes":{},)"
      R"("arena_bytes":{},"reserved_bytes":{},"lower_bound_bytes":{},"naive_bytes":{},)"
      R"("captured_bytes":{},"unbudgeted_bytes":{},"repeated_nodes":{},"micro_batches":{},)"
      R"("moved_bytes":{},"is_reordered":{:d},"peak_node":{},"steps":)",
      plan.peak_bytes, plan.parameter_bytes, plan.optimizer_state_bytes, plan.feed_bytes,
      plan.arena_bytes, plan.reserved_bytes, plan.lower_bound_bytes, plan.naive_bytes,
      plan.captured_bytes, plan.unbudgeted_bytes, plan.repeated_nodes, plan.micro_batches,
      plan.moved_bytes, plan.is_reordered, json_string(plan.peak_node));
  const PlanDetails none;
  const PlanDetails& details = plan.details ? *plan.details : none;
  text += array(details.steps, [](const auto& step) { return text_of(step.tag); });
  // Offset, bytes, first and last step, category.
  text += R"(,"buffers":)" + array(details.buffers, [](const PlanDetails::Buffer& buffer) {
            return fmt::format("[{},{},{},{},{}]", buffer.offset, buffer.bytes, buffer.first,
                               buffer.last, static_cast<int>(buffer.category));
          });
  return text + "}";
}

// In a script element, "</script" in a name would end it, and "<!--<script" the page.
std::string in_script(std::string json) {
  for (std::size_t at = 0; (at = json.find('<', at)) != json.npos;) json.replace(at, 1, "\\u003c");
  return json;
}

}  // namespace

std::string page_data(const std::string& title, const Device* device, std::span<const PageRun> runs,
                      const std::string& comparison, bool is_live) {
  std::vector<std::string> categories;
  for (std::size_t i = 0; i < kCategoryCount; ++i)
    categories.push_back(json_string(name(static_cast<Category>(i))));
  std::string text =
      fmt::format(R"({{"format":"ebb memory report","version":1,"live":{},"title":{},)", is_live,
                  json_string(title));
  if (device) {
    const CachingAllocator& allocator = device->runtime().allocator();
    text += fmt::format(R"("device":{},"capacity_bytes":{},)", json_string(device->name()),
                        allocator.capacity_bytes());
    if (allocator.limit_bytes() != kNoLimit)
      text += fmt::format(R"("limit_bytes":{},)", allocator.limit_bytes());
  }
  text += "\"categories\":" + array(categories) + ",";
  text += "\"comparison\":" + comparison + ",\"runs\":[";
  for (const PageRun& run : runs) {
    const EventLog::Reading reading = run.log ? run.log->read() : EventLog::Reading{};
    text += fmt::format(R"({}{{"name":{},"is_relative":{},"predicted_peak_bytes":{},)",
                        &run == runs.data() ? "" : ",", json_string(run.name), run.is_relative,
                        run.predicted_peak_bytes);
    text += text_of(pack(reading, kMostBytes / runs.size())) +
            ",\"plans\":" + array(run.plans, [](const Plan& plan) { return text_of(plan); }) + "}";
  }
  return text + "]}";
}

std::string page_of(const std::string& data) {
  return std::string(kPageHead) + in_script(data) + std::string(kPageTail);
}

void write_page(const std::string& path, const std::string& title, const Device* device,
                std::span<const PageRun> runs, const std::string& comparison) {
  ebb::detail::OutputFile file(path);
  const std::string page = page_of(page_data(title, device, runs, comparison));
  file.write(page.data(), page.size());
  file.commit();
}

}  // namespace detail

void Recording::write_html(const std::string& path) const {
  const detail::PageRun run{.name = "recording", .log = log_};
  detail::write_page(path, "Memory of " + device_.name(), &device_, {&run, 1});
}

void Comparison::write_html(
    const std::string& path,
    std::initializer_list<std::reference_wrapper<const Comparison>> beside) const {
  std::vector<detail::PageRun> runs;
  const auto add = [&](const Comparison& comparison) {
    comparison.for_each_run([&](const Measurement& result) {
      runs.push_back({.name = result.name,
                      .log = result.log,
                      .is_relative = true,
                      .predicted_peak_bytes = result.predicted.peak_bytes,
                      .plans = result.plans});
    });
  };
  add(*this);
  for (const Comparison& each : beside) add(each);
  detail::write_page(path, "Memory of programs on " + device_.name(), &device_, runs, json());
}

void Plan::write_html(const std::string& path) const {
  const detail::PageRun run{.name = "plan", .plans = {this, 1}};
  detail::write_page(path, "A plan", nullptr, {&run, 1});
}

}  // namespace ebb::memory
