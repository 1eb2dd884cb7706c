// Sessions on a device whose programs are captured: feeds and fetches go through fixed places.
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/second_device.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/graph/models.h"

using namespace ebb;
using namespace ebb::tests;

namespace {
using Floats = std::vector<float>;
}

TEST_CASE("a feed is read when a run begins, and a fetch is the caller's, where both have slots") {
  const Device second = make_second_device({.captures_programs = true});
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1});
  const Tensor unused = graph.placeholder("unused", DType::f32, {-1});
  const Tensor y = x * 2;
  Session session(graph, {.device = second});
  const Tensor fed = Tensor::from({1.f, 2.f});
  const Feeds feeds = {{x, fed}, {unused, Tensor::full({1000}, 1)}};
  const auto first = session.run({x, y, x, rows(unused)}, feeds);
  const auto second_run = session.run(
      {x, y, x, rows(unused)}, {{x, Tensor::from({5.f, 6.f})}, {unused, Tensor::full({1000}, 1)}});
  CHECK(first[0].to_vector<float>() == Floats{1, 2});
  CHECK(first[1].to_vector<float>() == Floats{2, 4});
  CHECK(first[2].to_vector<float>() == Floats{1, 2});
  CHECK(first[3].item<std::int64_t>() == 1000);
  CHECK(second_run[1].to_vector<float>() == Floats{10, 12});
  // An input that no fetch reads has no slot.
  CHECK(graph.plan({y}, {{x, {2}}}, second).arena_bytes ==
        graph.plan({y, rows(unused)}, {{x, {2}}, {unused, {1000}}}, second).arena_bytes - 512);
  CHECK(session.run(x, {{x, Tensor::full({0}, 1)}}).elements() == 0);
}

TEST_CASE("a session takes feeds of its own device and, where they have slots, of the host") {
  const Device captures = make_second_device({.captures_programs = true}),
               reads = make_second_device();
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {1});
  const Tensor y = x + 1;
  const Tensor on_host = Tensor::from({1.f});
  Session a(graph, {.device = captures}), b(graph, {.device = reads});
  CHECK(a.run(y, {{x, on_host}}).item<float>() == 2);
  CHECK(a.run(y, {{x, on_host.to(captures)}}).item<float>() == 2);
  CHECK(b.run(y, {{x, on_host.to(reads)}}).item<float>() == 2);
  CHECK_THROWS_WITH(b.run(y, {{x, on_host}}), Catch::Contains("cpu") && Catch::Contains("second"));
  CHECK_THROWS_AS(a.run(y, {{x, on_host.to(reads)}}), Error);
}
