// The page of a recording: what is packed into it adds up to what happened.
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/comparison.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/memory/recording.h"
#include "ebb/core/memory/timeline.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/create.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"

using namespace ebb;
using memory::detail::pack;
using memory::detail::Timeline;
using Json = nlohmann::json;

namespace {

using Row = Timeline::Row;

Row operator+(Row a, const Row& b) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  return a;
}

std::int64_t allocated(const Row& row) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < memory::kCategoryCount; ++i) sum += row[i];
  return sum;
}

// Steps of random blocks, some of which stay or change their category; every third is the same.
void run_randomly(const Device& device, memory::Recording& recording, unsigned seed) {
  memory::CachingAllocator& allocator = device.runtime().allocator();
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return static_cast<unsigned>(random() % n); };
  std::vector<memory::Block*> blocks;
  for (int step = 0; step < 60; ++step) {
    const std::size_t kept = blocks.size();
    if (step % 3 == 0) random.seed(seed);
    for (unsigned i = below(20); i > 0; --i) {
      blocks.push_back(allocator.allocate({.bytes = below(1 << 20),
                                           .category = static_cast<memory::Category>(below(7)),
                                           .tag = {i % 2 ? "odd" : "even", "file", i}}));
      if (below(4) == 0)
        allocator.recategorise(blocks[below(static_cast<unsigned>(blocks.size()))],
                               memory::Category::activation);
    }
    while (blocks.size() > kept + (step % 7 == 0 ? 1 : 0)) {
      allocator.free(blocks.back());
      blocks.pop_back();
    }
    allocator.release_cached();  // so that the most reserved bytes lie within a step
    if (step % 20 == 19) recording.mark("a \"mark\" </script>");
    recording.step();
  }
  for (memory::Block* block : blocks) allocator.free(block);
}

// Bytes that the codes of a pattern leave above its beginning, the most on the way, and the codes
// up to there.
std::tuple<Row, std::int64_t, std::size_t> replayed(const Timeline& timeline,
                                                    const Timeline::Pattern& pattern) {
  Row row{};
  std::int64_t most = 0;
  std::size_t at = 0;
  for (std::size_t i = 0; i < pattern.codes.size(); ++i) {
    const Timeline::Code code = pattern.codes[i];
    const Timeline::Piece& piece =
        timeline.pieces[static_cast<std::size_t>(code / Timeline::kPiece)];
    const auto bytes = static_cast<std::int64_t>(piece.bytes);
    row[piece.category] += code & Timeline::kGoes ? -bytes : bytes;
    if (code & Timeline::kJoined || allocated(row) <= most) continue;
    most = allocated(row);
    at = i + 1;
  }
  return {row, most, at};
}

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

Json data_of(const std::string& file) {
  const std::string page = text_of(file), begin = R"(<script id="data" type="application/json">)";
  const std::size_t from = page.find(begin) + begin.size();
  return Json::parse(page.substr(from, page.find("</script>", from) - from));
}

}  // namespace

TEST_CASE("a packed recording has the bytes and the peak of each step, however little it keeps") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Device device = Device::simulated("h200", std::size_t{1} << 34);
    const Tensor before = Tensor::zeros({1000}, DType::f32, device);
    memory::Recording recording(device, {.max_events = seed % 2 ? 300u : 1'000'000u});
    const memory::PeakScope peak(device);
    run_randomly(device, recording, seed);
    const memory::EventLog::Reading reading = recording.log()->read();
    std::size_t whole = 0;
    for (const std::size_t bytes : {1'000'000U, 20'000U, 0U}) {
      INFO("seed " << seed << ", " << bytes << " bytes");
      const Timeline timeline = pack(reading, bytes);
      Row held = timeline.before;
      CHECK(allocated(held) == 4096);
      std::int64_t most = 0, most_reserved = 0, steps = 0, marks = 0, nanoseconds = 0;
      std::size_t codes = 0;
      for (const Timeline::Span& span : timeline.spans) {
        const Timeline::Pattern& pattern = timeline.patterns[span.pattern];
        most = std::max(most, allocated(held + pattern.peak));
        most_reserved = std::max(most_reserved, (held + pattern.peak).back());
        held = held + pattern.net;
        steps += span.steps;
        marks += span.name >= 0 ? 1 : 0;
        nanoseconds += span.nanoseconds;
        if (pattern.is_sample) continue;
        codes += pattern.codes.size();
        const auto [net, top, at] = replayed(timeline, pattern);
        CHECK(net == pattern.net);
        if (pattern.is_thinned) continue;
        CHECK(top == allocated(pattern.peak));
        CHECK(at == pattern.peak_events);
      }
      CHECK(allocated(held) == 4096);
      CHECK(steps == 60);
      CHECK(marks == 3 + 1);  // and the end
      CHECK(nanoseconds == reading.events.back().nanoseconds);
      CHECK(static_cast<std::size_t>(most_reserved) == memory::stats(device).reserved.peak);
      CHECK(static_cast<std::size_t>(most) == peak.bytes());
      if (bytes == 1'000'000) whole = codes;
      if (bytes == 0) CHECK(codes < whole);  // so that thinning was tried
    }
  }
}

TEST_CASE("the peak's, last and first spans stay whole longest, then those that repeat most") {
  memory::EventLog log(1'000'000);
  const auto add = [&](memory::EventKind kind, std::uintptr_t at, std::size_t bytes) {
    log.add(kind, reinterpret_cast<void*>(at), bytes, memory::Category::input, {});
  };
  const auto step = [&](std::uintptr_t place, std::size_t bytes, std::uintptr_t order = 0) {
    for (std::uintptr_t i = 0; i < 100; ++i)
      for (const auto kind : {memory::EventKind::allocate, memory::EventKind::free})
        add(kind, 1000 * place + (i ^ order), bytes);
    log.step();
  };
  step(1, 10);
  step(2, 50);
  step(2, 50, 1);  // the same pieces in another order
  for (const std::uintptr_t held : {7U, 8U}) {
    add(memory::EventKind::allocate, held, 40);
    log.mark("held");
  }
  step(3, 20);  // the peak
  for (int i = 0; i < 3; ++i) step(4, 10);
  step(5, 10);
  const std::vector<std::size_t> whole[] = {{5}, {0, 5}, {0, 5, 7}, {0, 5, 6, 7}};
  for (std::size_t n = 1; n <= std::size(whole); ++n) {
    // Takes 250 for each pattern, 6 for each code and 40 for each piece; whole ones have three
    // quarters.
    const Timeline timeline =
        pack(log.read(), (8 * 250 + 2 * 46 + n * (200 * 6 + 100 * 40) + 2000) * 4 / 3);
    std::vector<std::size_t> found;
    for (std::size_t p = 0; p < timeline.patterns.size(); ++p)
      if (timeline.patterns[p].codes.size() > 1) found.push_back(p);
    CHECK(found == whole[n - 1]);
    CHECK(timeline.pieces.size() == 100 * n + 2);
  }
}

TEST_CASE("only what happens at one moment is joined: the parts of a block, both of a change") {
  memory::EventLog log(100);
  int one = 0, other = 0;
  using memory::Category;
  memory::ByCategory split{};
  split[static_cast<std::size_t>(Category::input)] = 512;
  split[static_cast<std::size_t>(Category::workspace)] = 1024;
  log.add(memory::EventKind::allocate, &one, split, {"a", "file", 1, "x"});
  log.add(memory::EventKind::allocate, &other, 512, Category::input, {"a", "file", 1, "y"});
  log.add(memory::EventKind::allocate, nullptr, 0, Category::input, {});
  log.recategorise(&other, 512, Category::input, Category::activation, {"a", "file", 1, "y"});
  log.recategorise(&other, 512, Category::activation, Category::input, {"a", "file", 1, "y"});
  log.add(memory::EventKind::free, &one, split, {"a", "file", 1, "x"});
  const Timeline timeline = pack(log.read(), 1'000'000);
  std::vector<Timeline::Code> flags;
  for (const Timeline::Code code : timeline.patterns.at(0).codes)
    flags.push_back(code % Timeline::kPiece);
  CHECK(flags == std::vector<Timeline::Code>{2, 0, 0, 3, 0, 3, 0, 3, 1});
  CHECK(timeline.pieces.size() == 4);
}

TEST_CASE("a page stays small however much leaks and however many steps differ") {
  const Device device = Device::simulated("h200", std::size_t{1} << 40);
  memory::CachingAllocator& allocator = device.runtime().allocator();
  for (const bool leaks : {true, false}) {
    memory::Recording recording(device);
    std::vector<memory::Block*> blocks;
    for (std::size_t step = 0; step < 20'000; ++step) {
      for (unsigned i = 0; i < 10; ++i)
        blocks.push_back(
            allocator.allocate({.bytes = 512 * (1 + step % 977), .tag = {"leak", "file", i}}));
      for (; !leaks && !blocks.empty(); blocks.pop_back()) allocator.free(blocks.back());
      recording.step();
    }
    const std::size_t held = allocator.allocated_bytes();
    const tests::TemporaryFolder folder;
    recording.write_html(folder.path("page.html"));
    for (memory::Block* block : blocks) allocator.free(block);
    CHECK(std::filesystem::file_size(folder.path("page.html")) < 5'000'000);
    const Timeline timeline = pack(recording.log()->read(), 200'000);
    std::size_t steps = 0, known = 0, count = 0;
    for (const Timeline::Span& span : timeline.spans) {
      steps += static_cast<std::size_t>(span.steps);
      for (const Timeline::Code code : timeline.patterns[span.pattern].codes) {
        const Timeline::Piece& piece =
            timeline.pieces[static_cast<std::size_t>(code / Timeline::kPiece)];
        if (piece.category == memory::kCategoryCount || !leaks) continue;
        if (code & Timeline::kGoes) continue;
        known += piece.bytes;
        count += piece.blocks;
      }
    }
    CHECK(steps == 20'000);
    if (!leaks)  // of steps that leave nothing the peak is the largest
      CHECK_FALSE(std::ranges::max(timeline.patterns, {}, [](const Timeline::Pattern& pattern) {
                    return allocated(pattern.peak);
                  }).is_thinned);
    if (leaks) CHECK(known == held);
    if (leaks) CHECK(count == 200'000);
  }
}

TEST_CASE("steps that are alike are kept once") {
  const Device device = Device::cpu();
  memory::Recording recording(device);
  for (int i = 0; i < 50; ++i) {
    { const Tensor x = Tensor::full({1000}, 1, DType::f32, device) + 1; }
    recording.step();
  }
  CHECK(pack(recording.log()->read(), 1'000'000).patterns.size() <= 3);  // the first may map memory
}

TEST_CASE("a page has its data, and no name ends its script") {
  const tests::TemporaryFolder folder;
  const Device device = Device::simulated("h200", std::size_t{1} << 34);
  Tensor::zeros({1 << 20}, DType::f32, device);  // stays in the cache
  memory::Comparison comparison(device), beside(device);
  for (memory::Comparison* each : {&comparison, &beside})
    each->measure("<!--<script></script>", [](const Device& here, memory::Marks& mark) {
      const Tensor x = Tensor::full({1 << 20}, 1, DType::f32, here);
      mark("</script><b>");
      mark.step(Tensor());
      memory::Plan plan;
      plan.peak_bytes = 7;
      mark.plan(plan);
    });
  const std::string file = folder.path("page.html");
  memory::set_limit(device, std::size_t{1} << 30);
  comparison.write_html(file, {beside});
  CHECK(text_of(file).find("<!--") == std::string::npos);  // with "<script" it hides the page
  const Json data = data_of(file);
  CHECK(data["capacity_bytes"] == std::size_t{1} << 34);
  CHECK(data["limit_bytes"] == 1 << 30);
  const memory::EventLog::Reading reading = comparison.results()[0].log->read();
  CHECK(std::ranges::any_of(reading.events, [&](const memory::Event& event) {
    return reading.tags[event.tag].operator_name == std::string("scope end");
  }));
  REQUIRE(data["runs"].size() == 2);
  for (const Json& run : data["runs"]) {
    CHECK(run["name"] == "<!--<script></script>");
    CHECK(run["names"] == Json({"</script><b>", "scope end", "end"}));
    CHECK(run["predicted_peak_bytes"] == 4 << 20);
    CHECK(run["plans"][0]["peak_bytes"] == 7);
    CHECK(run["is_relative"]);
    CHECK(run["before"].back() == 0);
  }
  CHECK_THROWS_AS(comparison.write_html(folder.path("nowhere/page.html")), FileError);
  memory::Recording(device).write_html(file);
  CHECK_FALSE(data_of(file)["runs"][0]["is_relative"]);
  memory::Plan plan;
  plan.lower_bound_bytes = 5;
  memory::PlanDetails details;
  details.buffers.push_back(
      {.offset = 1, .bytes = 2, .first = 3, .last = 4, .category = memory::Category::workspace});
  plan.details = std::make_shared<const memory::PlanDetails>(details);
  plan.write_html(file);
  const Json written = data_of(file)["runs"][0]["plans"][0];
  CHECK(written["lower_bound_bytes"] == 5);
  CHECK(written["buffers"][0] == Json({1, 2, 3, 4, int(memory::Category::workspace)}));
}
