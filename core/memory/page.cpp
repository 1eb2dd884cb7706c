#include "ebb/core/memory/page.h"

#include <spdlog/fmt/fmt.h>

#include <iterator>
#include <nlohmann/json.hpp>
#include <string_view>

#include "ebb/core/device/runtime.h"
#include "ebb/core/files/output_file.h"
#include "ebb/core/memory/comparison.h"
#include "ebb/core/memory/page_assets.h"
#include "ebb/core/memory/recording.h"
#include "ebb/core/memory/timeline.h"

namespace ebb::memory {

namespace detail {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostBytes = 4'000'000;  // of all runs, so that a page stays below 5 MB

std::string text_of(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json to_json(const Tag& tag) { return {tag.operator_name, tag.file, tag.line, tag.layer}; }

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
  Json tags = Json::array();
  for (const Tag& tag : timeline.tags) tags.push_back(to_json(tag));
  std::string text = fmt::format(R"("before":{},"tags":{},"names":{},"pieces":)",
                                 array(timeline.before), text_of(tags), text_of(timeline.names));
  text += array(timeline.pieces, [](const Timeline::Piece& piece) {
    return fmt::format("[{},{},{},{}]", piece.address, piece.bytes, piece.category, piece.tag);
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
  Json json = {{"peak_bytes", plan.peak_bytes},
               {"parameter_bytes", plan.parameter_bytes},
               {"optimizer_state_bytes", plan.optimizer_state_bytes},
               {"feed_bytes", plan.feed_bytes},
               {"arena_bytes", plan.arena_bytes},
               {"reserved_bytes", plan.reserved_bytes},
               {"lower_bound_bytes", plan.lower_bound_bytes},
               {"naive_bytes", plan.naive_bytes},
               {"unbudgeted_bytes", plan.unbudgeted_bytes},
               {"repeated_nodes", plan.repeated_nodes},
               {"micro_batches", plan.micro_batches},
               {"moved_bytes", plan.moved_bytes},
               {"is_reordered", plan.is_reordered},
               {"captured_bytes", plan.captured_bytes},
               {"peak_node", plan.peak_node}};
  Json steps = Json::array(), buffers = Json::array();
  if (plan.details) {
    for (const PlanDetails::Step& step : plan.details->steps) {
      Json tag = to_json(step.tag);
      tag.push_back(step.is_repeated);
      steps.push_back(tag);
    }
    for (const PlanDetails::Buffer& buffer : plan.details->buffers)
      buffers.push_back({buffer.offset, buffer.bytes, buffer.first, buffer.last,
                         static_cast<int>(buffer.category)});
  }
  json["steps"] = std::move(steps);
  json["buffers"] = std::move(buffers);  // offset, bytes, first and last step, category
  return text_of(json);
}

// In a script element, "</script" in a name would end it.
std::string in_script(std::string text) {
  for (std::size_t at = 0; (at = text.find("</", at)) != std::string::npos; at += 3)
    text.insert(at + 1, "\\");
  return text;
}

}  // namespace

void write_page(const std::string& path, const std::string& title, const Device* device,
                std::span<const PageRun> runs, const std::string& comparison) {
  Json categories = Json::array();
  for (std::size_t i = 0; i < kCategoryCount; ++i)
    categories.push_back(name(static_cast<Category>(i)));
  Json head = {{"format", "ebb memory report"}, {"version", 1}, {"title", title}};
  head["device"] = nullptr;
  head["capacity_bytes"] = head["limit_bytes"] = nullptr;
  if (device) {
    const CachingAllocator& allocator = device->runtime().allocator();
    head["device"] = device->name();
    head["capacity_bytes"] = allocator.capacity_bytes();
    if (allocator.limit_bytes() != kNoLimit) head["limit_bytes"] = allocator.limit_bytes();
  }
  head["categories"] = std::move(categories);
  std::string text = text_of(head);
  text.back() = ',';  // reopens the object
  text += "\"comparison\":" + comparison + ",\"runs\":[";
  for (const PageRun& run : runs) {
    const EventLog::Reading reading = run.log ? run.log->read() : EventLog::Reading{};
    text += fmt::format(R"({}{{"name":{},"is_relative":{},"predicted_peak_bytes":{},)",
                        &run == runs.data() ? "" : ",", text_of(Json(run.name)), run.is_relative,
                        run.predicted_peak_bytes);
    text += text_of(pack(reading, kMostBytes / runs.size())) +
            ",\"plans\":" + array(run.plans, [](const Plan& plan) { return text_of(plan); }) + "}";
  }
  text += "]}";

  ebb::detail::OutputFile file(path);
  const auto write = [&](std::string_view piece) { file.write(piece.data(), piece.size()); };
  write(kPageHead);
  write(in_script(text));
  write(kPageTail);
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
    for (const Measurement& result : comparison.results())
      runs.push_back({.name = result.name,
                      .log = result.log,
                      .is_relative = true,
                      .predicted_peak_bytes = result.predicted.peak_bytes,
                      .plans = result.plans});
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
