// Tensors on several devices: copies, mixed inputs, and the life of a device's memory.
#include "ebb/core/base/error.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/graph/graph_state.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/second_device.h"

using namespace ebb;
using ebb::tests::make_second_device;

namespace {
using Floats = std::vector<float>;
}

TEST_CASE("a second derivative goes through a move and back") {
  const Device second = make_second_device();
  const Tensor w = Tensor::from({1.f, 2.f}).with_grad();
  const Tensor there = w.to(second);
  CHECK(there.device() == second);
  const Tensor cubes = sum(there * there * there).to(Device::cpu());
  const Tensor first = gradients(cubes, {w}, {.create_graph = true})[0];
  CHECK(first.device() == Device::cpu());
  CHECK(first.to_vector<float>() == Floats{3, 12});
  CHECK(gradients(sum(first), {w})[0].to_vector<float>() == Floats{6, 12});
}

TEST_CASE("a move keeps nothing of what is moved alive") {
  const Device second = make_second_device();
  const std::size_t before = Device::cpu().runtime().allocator().allocated_bytes();
  const Tensor w = Tensor::full({1}, 1).with_grad();
  const std::size_t leaf = Device::cpu().runtime().allocator().allocated_bytes() - before;
  const Tensor moved = (w * Tensor::full({1000}, 1)).to(second);
  CHECK(Device::cpu().runtime().allocator().allocated_bytes() - before <= leaf + 4096);
}

TEST_CASE("a move to where a tensor is already is that tensor, and one of a symbolic is refused") {
  const Tensor x = Tensor::from({1.f});
  CHECK(x.to(Device::cpu()).impl() == x.impl());
  Graph graph;
  const Tensor p = graph.placeholder("p", DType::f32, {1});
  CHECK_THROWS_AS(p.to(Device::cpu()), Error);
  CHECK_THROWS_AS(Tensor().to(Device::cpu()), Error);
}

TEST_CASE("operators refuse inputs on two devices and name both") {
  const Device second = make_second_device();
  const Tensor a = Tensor::from({1.f}), b = Tensor::from({1.f}).to(second);
  CHECK_THROWS_WITH(a + b, Catch::Contains("cpu") && Catch::Contains("second"));
  // Two devices may have one name.
  CHECK_ERROR(Tensor::zeros({1}, DType::f32, Device::parse("sim:h200:1GiB")) +
                  Tensor::zeros({1}, DType::f32, Device::parse("sim:h200:1GiB")),
              Error, "inputs are on two devices sim:h200: each Device::simulated() and twin()");
}

TEST_CASE("memory of a device that is gone lives as long as its tensors") {
  Tensor t;
  {
    const Device second = make_second_device();
    t = Tensor::full({3}, 4, DType::f32, second);
  }
  CHECK((t + 1).to(Device::cpu()).to_vector<float>() == Floats{5, 5, 5});
}

TEST_CASE(
    "while a graph traces a thread, what makes a tensor is a node, and constants are captured") {
  Graph graph;
  Tensor filled, drawn, sum_of_all, detached;
  {
    detail::TapeMode mode = detail::tape_mode();
    mode.tracing = &graph.state();
    const detail::TapeModeScope tracing(mode);
    filled = Tensor::full({2}, 3);
    drawn = uniform({1000});
    const Tensor constant = Tensor::from({1.f, 2.f});
    CHECK(!constant.is_symbolic());
    detached = constant.detach();
    sum_of_all = filled + constant + Tensor::zeros({2}) + constant.clone();
  }
  CHECK(filled.is_symbolic());
  CHECK(drawn.is_symbolic());
  CHECK(detached.is_symbolic());
  CHECK(!Tensor::full({2}, 3).is_symbolic());
  Session session(graph);
  CHECK(session.run(sum_of_all).to_vector<float>() == Floats{5, 7});
  CHECK(session.run(drawn).to_vector<float>() != session.run(drawn).to_vector<float>());
}

TEST_CASE("a part of a tensor moves as that part, and is fed as that part") {
  const Device second = make_second_device({.captures_programs = true});
  const Tensor x = Tensor::from({1.f, 2.f, 3.f, 4.f});
  CHECK(slice(x, 1, 3).to(second).to(Device::cpu()).to_vector<float>() == Floats{2, 3});
  Graph graph;
  const Tensor p = graph.placeholder("p", DType::f32, {2});
  Session session(graph, {.device = second});
  CHECK(session.run(p * 2, {{p, slice(x, 1, 3)}}).to_vector<float>() == Floats{4, 6});
}
