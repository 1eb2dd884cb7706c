// The message of a run that is out of memory: MEMORY.md, row 12.
#include <functional>
#include <sstream>

#include "ebb/core/device/runtime.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/second_device.h"
#include "ebb/tests/graph/models.h"

using namespace ebb;
using namespace ebb::literals;
using ebb::tests::ClassifierData;
using ebb::tests::ClassifierGraph;

namespace {

// Returns the error's message with its wrapped lines joined. Checks that no line is empty or over
// 100 columns.
std::string message(const std::function<void()>& call) {
  std::string text;
  try {
    call();
  } catch (const OutOfMemory& error) {
    text = error.what();
  }
  INFO(text);
  CHECK(text.find("out of memory on ") == 0);
  std::istringstream lines(text);
  std::string joined;
  for (std::string line; std::getline(lines, line);) {
    CHECK(line.size() <= 100);
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string::npos) FAIL("an empty line");
    joined += (joined.empty() ? "" : begin > 2 ? " " : "\n") + line.substr(begin);
  }
  return joined;
}

void check_says(const std::string& text, std::initializer_list<const char*> parts) {
  INFO(text);
  for (const char* part : parts) {
    CAPTURE(part);
    CHECK(text.find(part) != std::string::npos);
  }
}

std::vector<Device> small_devices() {
  return {tests::make_second_device({.captures_programs = true, .capacity_bytes = 1_GiB}),
          Device::simulated("cpu", 1_GiB)};
}

// Returns N of "with N rows in each feed", or -1 without such a hint.
std::int64_t hinted_rows(const std::string& text) {
  const std::string before = "with ";
  for (std::size_t at = text.find(before); at != std::string::npos;
       at = text.find(before, at + 1)) {
    std::istringstream rest(text.substr(at + before.size()));
    std::int64_t rows = 0;
    if (rest >> rows && text.find("in each feed this run would fit", at) != std::string::npos)
      return rows;
  }
  return -1;
}

// Checks that so many rows fit as the message of a run of `many` says, and no more; returns them.
std::int64_t check_hint(const std::function<void(std::int64_t)>& run, std::int64_t many) {
  const std::int64_t rows = hinted_rows(message([&] { run(many); }));
  REQUIRE(rows > 0);
  CHECK_THROWS_AS(run(rows + 1), OutOfMemory);
  CHECK_NOTHROW(run(rows));
  return rows;
}

}  // namespace

TEST_CASE("an operator at the device's limit names itself, its line, the holders and a limit",
          "[row12][host]") {
  for (const Device& device : small_devices()) {
    memory::set_limit(device, 48_MiB);
    const Tensor a = Tensor::zeros({4 << 20}, DType::f32, device), b = a + 1;
    std::vector<Tensor> many(40);
    for (Tensor& each : many) each = Tensor::zeros({16 << 10}, DType::f32, device);
    const std::string text = message([&] { a* b* b + a; });
    check_says(text, {"no room for 16 MiB", "asked by", "graph/out_of_memory.cpp:",
                      "the device's limit leaves no room for", "(limit 48 MiB)", "by category",
                      "16 MiB in 1 block by add", "2.5 MiB in 40 blocks by full",
                      "raise the limit (memory::set_limit) to", "a smaller batch"});
  }
}

TEST_CASE("a run beyond its session's limit says which line, what it holds and what would fit",
          "[row12][host]") {
  const ClassifierGraph model;
  for (const Device& device : small_devices()) {
    const ClassifierData small(8, device), large(40'000, device);
    Session session = model.open({.device = device, .memory_limit = 2_MiB});
    session.run(model.train, feeds(model, small));
    const std::string text = message([&] { session.run(model.train, feeds(model, large)); });
    check_says(text,
               {", session: no room for", "asked by", "models.h:", "session arena",
                "the session's limit leaves no room for", "by session   reserved", "(limit 2 MiB)",
                "raise the session's limit (set_memory_limit, or its budget) to",
                "in each feed this run would fit"});
    const auto step = compile([](const Tensor& x) { return sum(matmul(tanh(x), transpose(x))); },
                              {.memory_limit = 2_MiB});
    const Tensor x = Tensor::zeros({1024, 1024}, DType::f32, device);
    check_says(message([&] { step(x); }),
               {"the compiled step's limit leaves no room for", "by compiled  reserved",
                "raise the compiled step's limit (CompileOptions) to"});
  }
}

TEST_CASE("with so many rows as the message says the run fits, and with more it does not",
          "[row12][row16][host]") {
  const ClassifierGraph model;
  for (const Device& device : small_devices())
    for (const bool of_session : {true, false})
      for (const bool is_warm : {true, false})
        for (const bool trains : {true, false}) {
          CAPTURE(device.name(), of_session, is_warm, trains);
          const ClassifierData small(8, device), large(40'000, device);
          const Tensor fetch = trains ? model.train : model.loss;
          Session session = model.open({.device = device});
          if (is_warm) session.run(model.train, feeds(model, small));
          const auto others = [&] {
            memory::release_cached(device);
            return memory::stats(device).reserved.current - session.stats().reserved.current;
          };
          const std::size_t before = others(),
                            limit = memory::stats(device).reserved.current + 2_MiB;
          if (of_session)
            session.set_memory_limit(2_MiB + 77);
          else
            memory::set_limit(device, limit + 77);
          const auto run = [&](const ClassifierData& data) {
            session.run(fetch, feeds(model, data));
          };
          const std::int64_t rows = hinted_rows(message([&] { run(large); }));
          REQUIRE(rows > 8);
          memory::set_limit(device, std::nullopt);
          // Under a device limit a fetch may need a page of its own, so that the limit is not
          // exact.
          const ClassifierData fits(rows, device),
              more(of_session ? rows + 1 : rows + rows / 20, device);
          if (!of_session) memory::set_limit(device, limit + 77 + others() - before);
          CHECK_THROWS_AS(run(more), OutOfMemory);
          CHECK_NOTHROW(run(fits));
        }
}

TEST_CASE("rows are counted in the feeds of open length, and what is fetched takes room too",
          "[row12][row16][host]") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 256});
  const Tensor scale = graph.placeholder("scale", DType::f32, {3, 256});
  const Tensor y = softmax(x) + sum(scale), total = sum(y);
  for (const Device& device : small_devices())
    for (const bool fetches_rows : {true, false}) {
      CAPTURE(device.name(), fetches_rows);
      const Tensor factor = Tensor::full({3, 256}, 2, DType::f32, device);
      const auto rows_of = [&](std::int64_t rows) {
        return Tensor::zeros({rows, 256}, DType::f32, device);
      };
      Session session(graph, {.device = device});
      const auto run = [&](const Tensor& rows) {
        session.run(fetches_rows ? y : total, {{x, rows}, {scale, factor}});
      };
      const Tensor large = rows_of(40'000);
      run(rows_of(8));
      memory::release_cached(device);
      memory::set_limit(device, memory::stats(device).reserved.current + 16_MiB);
      const std::int64_t rows = hinted_rows(message([&] { run(large); }));
      const std::int64_t most = fetches_rows ? 8 << 10 : 16 << 10;  // 1 KiB a row, once or twice
      CHECK(rows < most + 16);
      CHECK(rows > most - 64);
      memory::set_limit(device, std::nullopt);
      const Tensor fits = rows_of(rows - 8);  // less the ends of pages
      memory::release_cached(device);
      memory::set_limit(device, memory::stats(device).reserved.current + 16_MiB);
      CHECK_NOTHROW(run(fits));
      memory::set_limit(device, std::nullopt);
    }
}

TEST_CASE("where no number of rows is a way out, none is named", "[row12][host]") {
  Graph graph;
  const Tensor a = graph.placeholder("a", DType::f32, {-1, 256});
  const Tensor b = graph.placeholder("b", DType::f32, {-1, 256});
  const Tensor whole = graph.placeholder("whole", DType::f32, {4096, 256});
  const auto names_rows = [](const std::string& text) {
    return text.find("in each feed") != std::string::npos;
  };
  for (const Device& device : small_devices()) {
    const Tensor many = Tensor::zeros({4096, 256}, DType::f32, device);
    const Tensor more = Tensor::zeros({8192, 256}, DType::f32, device);
    Session session(graph, {.device = device, .memory_limit = 1_MiB});
    const Tensor of_both = sum(softmax(a)) + sum(softmax(b)), of_whole = sum(softmax(whole));
    CHECK(names_rows(message([&] { session.run(of_both, {{a, many}, {b, many}}); })));
    CHECK_FALSE(names_rows(message([&] { session.run(of_both, {{a, many}, {b, more}}); })));
    CHECK_FALSE(names_rows(message([&] { session.run(of_whole, {{whole, many}}); })));
    session.set_memory_limit({});
    device.runtime().allocator().fail_allocation_after(0);
    CHECK_FALSE(names_rows(message([&] { session.run(of_both, {{a, many}, {b, many}}); })));
    CHECK_NOTHROW(session.run(of_both, {{a, many}, {b, many}}));
  }
}

TEST_CASE("where one row fits and no second, the message says with 1 row", "[row12][host]") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 1 << 18});
  const Tensor total = sum(softmax(x));
  for (const Device& device : small_devices()) {
    Session session(graph, {.device = device, .memory_limit = 1_MiB + 64_KiB});
    CHECK(check_hint(
              [&](std::int64_t rows) {
                session.run(total, {{x, Tensor::zeros({rows, 1 << 18}, DType::f32, device)}});
              },
              4) == 1);
  }
}

TEST_CASE("the rows of the message and available() count slots that came at different times",
          "[row12][row16]") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 64});
  const Tensor y = graph.placeholder("y", DType::i32, {-1});
  const Parameters parameters(graph, Seed{7});
  const models::Dense hidden(parameters.scope("hidden"), 64, 256, Activation::relu);
  const models::Dense out(parameters.scope("out"), 256, 32);
  const Tensor loss = softmax_cross_entropy(out(dropout(hidden(x), 0.5, Phase::training)), y);
  const Tensor train = optim::Adam().minimize(loss, parameters);
  const Device device = Device::simulated("cpu", 1_GiB);
  const auto feeds = [&](std::int64_t rows) -> Feeds {
    return {{x, Tensor::zeros({rows, 64})}, {y, Tensor::zeros({rows}, DType::i32)}};
  };
  const std::size_t page = device.runtime().profile().page_bytes;
  for (int i = 0; i < 8; ++i) {
    const std::size_t limit = 8_MiB + static_cast<std::size_t>(i) * page;
    CAPTURE(limit);
    Session session(graph, {.device = device, .memory_limit = limit});
    session.initialize();
    session.run(loss, feeds(1));  // the random state has a segment of its own
    const std::size_t before = session.available();
    session.run(train, feeds(1));
    const std::size_t available = session.available();
    CHECK(available == before);
    const std::int64_t rows =
        check_hint([&](std::int64_t count) { session.run(train, feeds(count)); }, 40'000);
    const auto planned = [&](std::int64_t count) {
      return graph.plan({train}, {{x, {count, 64}}, {y, {count}}}, device).reserved_bytes;
    };
    CHECK(planned(rows) <= available);
    CHECK(planned(rows + 1) > available);
  }
}

TEST_CASE("what a session has reserved ahead is counted once, below its target and beyond",
          "[row9][row12][row16]") {
  const ClassifierGraph model;
  const Device device = Device::simulated("cpu", 1_GiB);
  memory::set_limit(device, 40_MiB);
  Session session =
      model.open({.device = device, .memory_limit = 4_MiB, .growth = memory::Growth::preallocate});
  const auto run = [&](std::int64_t rows) {
    const ClassifierData data(rows);
    session.run(model.loss, feeds(model, data));
  };
  run(100);
  CHECK(session.available() == 4_MiB);
  session.set_memory_limit(std::nullopt);
  CHECK(session.available() <= 40_MiB);
  run(100'000);
  REQUIRE(session.stats().reserved.current > 4_MiB);
  CHECK(session.available() <= 40_MiB);
  const std::int64_t rows = hinted_rows(message([&] { run(400'000); }));
  REQUIRE(rows > 100'000);
  CHECK_THROWS_AS(run(rows + rows / 20), OutOfMemory);
  CHECK_NOTHROW(run(rows));
}

TEST_CASE("nothing that a session has reserved ahead is promised to what it fetches",
          "[row9][row12][row16]") {
  const ClassifierGraph model;
  for (const bool limited : {false, true}) {
    CAPTURE(limited);
    const Device device = Device::simulated("cpu", 1_GiB);
    memory::set_limit(device, 16_MiB);
    SessionOptions options{.device = device, .growth = memory::Growth::preallocate};
    if (limited) options.memory_limit = memory::available(device) - 8_KiB;
    Session session = model.open(options);
    const auto run = [&](std::int64_t rows) {
      const ClassifierData data(rows);
      session.run(model.scores, {{model.x, data.x}});
    };
    CHECK_NOTHROW(run(1));
    memory::release_cached(device);
    check_hint(run, 80'000);
  }
}

TEST_CASE("a run of which no batch fits says so, and advises what is of use", "[row12][host]") {
  const ClassifierGraph model;
  for (const Device& device : small_devices()) {
    const ClassifierData data(8, device);
    Session session = model.open({.device = device, .memory_limit = 6_KiB});
    const auto run = [&] { session.run(model.train, feeds(model, data)); };
    const std::string slots = message(run);
    check_says(slots, {"optimizer_state", "not even with 1 row in each feed would this run fit",
                       "take a smaller model, or an optimizer that keeps less"});
    Session none(model.graph, {.device = device, .memory_limit = 100});
    const std::string parameters = message([&] { none.initialize(model.parameters); });
    check_says(parameters, {"parameter (", "models.h:", "take a smaller model"});
    session.set_memory_limit({});
    run();
    session.set_memory_limit(session.stats().reserved.current - session.memory().arena_bytes);
    const std::string arena = message(run);
    check_says(arena, {"session arena", "not even with 1 row in each feed would this run fit",
                       "lower the peak (recompute, bf16, a smaller model)"});
    for (const std::string& text : {slots, parameters, arena}) {
      CHECK(text.find("smaller batch") == std::string::npos);
      CHECK(text.find("micro-batch") == std::string::npos);
    }
  }
}

TEST_CASE("whoever is short of what sessions have preallocated is told to suspend them",
          "[row12][row9][host]") {
  const ClassifierGraph model;
  for (const Device& device : small_devices()) {
    Session session = model.open(
        {.device = device, .memory_limit = 32_MiB, .growth = memory::Growth::preallocate});
    memory::set_limit(device, 16_MiB);
    const auto zeros = [&] { Tensor::zeros({1 << 20}, DType::f32, device); };
    check_says(message(zeros), {"reserved by sessions that preallocate",
                                "suspend or close sessions that preallocate"});
    session.suspend();
    CHECK_NOTHROW(zeros());
    memory::set_limit(device, 1_MiB);
    CHECK(message(zeros).find("preallocate") == std::string::npos);
  }
}

TEST_CASE("what is more than the device has is not cured by a limit", "[row12][host]") {
  const Device device = tests::make_second_device({.capacity_bytes = 1_GiB});
  const auto zeros = [&] { Tensor::zeros({1 << 29}, DType::f32, device); };
  const std::string without = message(zeros);
  check_says(without, {"no room for 2 GiB", "the device refused to give 2 GiB more", "(no limit)",
                       "at most 1 GiB in one request", "1 GiB free of 1 GiB"});
  CHECK(without.find("raise") == std::string::npos);
  memory::set_limit(device, 512_MiB);
  const std::string with = message(zeros);
  check_says(with, {"limit leaves no room", "at most 512 MiB in one request"});
  CHECK(with.find("raise") == std::string::npos);
}

TEST_CASE("a preallocation that is refused says what it was for", "[row12][row9][host]") {
  const ClassifierGraph model;
  const Device device = tests::make_second_device();
  memory::set_limit(device, 8_MiB);
  const std::string text = message([&] {
    Session(model.graph,
            {.device = device, .memory_limit = 16_MiB, .growth = memory::Growth::preallocate});
  });
  check_says(text, {"no room for 16 MiB", "what a session preallocates",
                    "the device's limit leaves no room for 16 MiB more",
                    "raise the limit (memory::set_limit) to 16 MiB"});
  CHECK(memory::stats(device).reserved.current == 0);
}
