// Operators that move elements, as their users see them.
#include "ebb/core/ops/layout.h"

#include <functional>
#include <numeric>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/update.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/line.h"

namespace ebb::tests {
namespace {

using Floats = std::vector<float>;

// 0, 1, 2 and so on.
Tensor counted(const Shape& shape) {
  Floats values(static_cast<std::size_t>(shape.elements()));
  std::iota(values.begin(), values.end(), 0.f);
  return Tensor::from(values, shape);
}

Floats floats_of(const Tensor& x) { return x.to_vector<float>(); }
bool is(const Tensor& x, const Shape& shape, const Floats& values) {
  return x.shape() == shape && floats_of(x) == values;
}

}  // namespace

TEST_CASE("roll moves elements along an axis, and what leaves it comes in at the other side") {
  CHECK(is(roll(counted({4}), 1, 0), {4}, {3, 0, 1, 2}));
  CHECK(is(roll(counted({4}), -1, 0), {4}, {1, 2, 3, 0}));
  CHECK(is(roll(counted({4}), 9, 0), {4}, {3, 0, 1, 2}));
  CHECK(is(roll(counted({4}), -6, 0), {4}, {2, 3, 0, 1}));
  CHECK(is(roll(counted({4}), 8, 0), {4}, {0, 1, 2, 3}));
  CHECK(is(roll(counted({2, 3}), 1, -1), {2, 3}, {2, 0, 1, 5, 3, 4}));
  CHECK(is(roll(counted({1, 2}), 5, 0), {1, 2}, {0, 1}));
  const Tensor still = counted({4});
  CHECK(roll(still, -8, 0).impl() == still.impl());  // moves nothing and returns x itself
  CHECK(is(roll(counted({0, 2}), 5, 0), {0, 2}, {}));
  CHECK(roll(cast(counted({3}), DType::u8), 1, 0).to_vector<std::uint8_t>() ==
        std::vector<std::uint8_t>{2, 0, 1});
  const Tensor x = counted({3}).with_grad();
  CHECK(is(gradients(sum(roll(x, 1, 0) * counted({3})), {x})[0], {3}, {1, 2, 0}));
  CHECK_ERROR_HERE(roll(x, 1, 1), ShapeError, "[roll]");
  const Device small = Device::simulated("cpu", std::size_t{1} << 30);
  const Tensor most = Tensor::zeros({1 << 20}, DType::f32, small);
  memory::set_limit(small, most.bytes());
  CHECK_ERROR(roll(most, 1, 0), OutOfMemory, "layout.cpp:" + std::to_string(__LINE__));
  Graph graph;  // rolls an open axis by at most its size
  const Tensor open = graph.placeholder("x", DType::f32, {-1}), rolled = roll(open, 2, 0);
  Session session(graph);
  CHECK(is(session.run(rolled, {{open, counted({3})}}), {3}, {1, 2, 0}));
  CHECK(is(session.run(rolled, {{open, counted({2})}}), {2}, {0, 1}));
  CHECK_THROWS_AS(session.run(rolled, {{open, counted({1})}}), ShapeError);
}

TEST_CASE("A permutation that leaves all axes where they are is the tensor itself") {
  const Tensor x = counted({2, 3});
  const std::size_t before = Device::cpu().runtime().allocator().stats().requested.current;
  const Tensor same = permute(x, {0, 1}), too = transpose(x, 1, 1);
  CHECK(Device::cpu().runtime().allocator().stats().requested.current == before);
  CHECK((is(same, {2, 3}, floats_of(x)) && is(too, {2, 3}, floats_of(x))));
}

TEST_CASE("What moves nothing, with the shapes of a plan, takes no memory in it") {
  constexpr std::int64_t kRows = 1000;
  const auto arena = [](const std::function<Tensor(const Tensor&)>& moved) {
    Graph graph;
    const Tensor x = graph.placeholder("x", DType::f32, {-1, -1, 1});
    const Tensor after = moved(x + 1) + 1;
    return graph.plan({after}, {{x, {kRows, 1, 1}}}, Device::cpu()).arena_bytes;
  };
  const std::size_t one = arena([](const Tensor& x) { return x; });
  CHECK(arena([](const Tensor& x) { return slice(x, -1, kEnd, {.axis = 0, .step = -1}); }) ==
        2 * one);
  CHECK(arena([](const Tensor& x) { return permute(x, {0, 2, 1}); }) == one);
  CHECK(arena([](const Tensor& x) { return concat({x, Tensor::zeros({kRows, 0, 1})}, 1); }) == one);
  CHECK(arena([](const Tensor& x) { return slice(x, 0, kEnd, {.axis = 1}); }) == one);
  CHECK(arena([](const Tensor& x) { return pad(x, {{0, 0}, {0, 0}, {0, 0}}); }) == one);
  CHECK(arena([](const Tensor& x) { return broadcast_to(x, {kRows, -1, 1}); }) == one);
  CHECK(arena([](const Tensor& x) { return unsqueeze(squeeze(x, {1}), 1); }) == one);
}

TEST_CASE("concat and stack take tensors in any list") {
  const Tensor a = counted({1, 2}), b = counted({1, 2}) + 5;
  const std::vector<Tensor> list = {a, b};
  const Floats values = {0, 1, 5, 6};
  CHECK(is(concat({a, b}), {2, 2}, values));
  CHECK(is(concat(list, 1), {1, 4}, values));
  CHECK(is(concat(Tensors{a, b}, -1), {1, 4}, values));
  CHECK(is(concat(std::span<const Tensor>(list).first(1)), {1, 2}, {0, 1}));
  CHECK(is(stack({a, b}), {2, 1, 2}, values));
  CHECK(is(stack(list, -1), {1, 2, 2}, {0, 5, 1, 6}));
  CHECK(is(stack(Tensors{a, b}, 1), {1, 2, 2}, values));
}

TEST_CASE("Elements of nothing move, and a number around them is one of the tensor's dtype") {
  const Tensor x = counted({2, 4}), bytes = cast(counted({3}), DType::u8);
  CHECK(is(slice(x, 3, 3, {.axis = 1, .step = -1}), {2, 0}, {}));
  CHECK(is(slice(counted({2, 0}), -1, kEnd, {.axis = 1, .step = -1}), {2, 0}, {}));
  CHECK(is(split(x, {-1, 0}, 1)[0], {2, 4}, floats_of(x)));
  CHECK(is(split(x, {-1, 0}, 1)[1], {2, 0}, {}));
  CHECK(is(flip(counted({})), {}, {0}));
  CHECK(is(repeat(x, 0, 1), {2, 0}, {}));
  CHECK(pad(bytes, {{1, 1}}, 300).to_vector<std::uint8_t>() ==
        std::vector<std::uint8_t>{255, 0, 1, 2, 255});
}

TEST_CASE("Parts along the leading axis share memory, others are copies") {
  Tensor x = counted({4, 2});
  const Tensors rows = chunk(x, 2), columns = chunk(x, 2, 1);
  assign(x, 9);
  CHECK(is(rows[1], {2, 2}, {9, 9, 9, 9}));
  CHECK(is(columns[1], {4, 1}, {1, 3, 5, 7}));
}

TEST_CASE("Elements of every dtype move as they are") {
  const Tensor numbers = counted({4, 6});
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64,
                            DType::u8, DType::boolean}) {
    INFO(name(dtype));
    const Tensor x = cast(numbers, dtype);
    const auto same = [](const Tensor& moved, const Tensor& expected) {
      return is(cast(moved, DType::f32), expected.shape(), floats_of(expected));
    };
    const auto as_before = [&](const Tensor& y) { return cast(cast(y, dtype), DType::f32); };
    CHECK(same(transpose(x), as_before(transpose(numbers))));
    CHECK(same(concat({x, x}, 1), as_before(concat({numbers, numbers}, 1))));
    CHECK(same(slice(x, 5, 0, {.axis = 1, .step = -2}),
               as_before(slice(numbers, 5, 0, {.axis = 1, .step = -2}))));
    CHECK(same(repeat(x, 2, 1), as_before(repeat(numbers, 2, 1))));
    CHECK(same(pad(x, {{0, 1}, {2, 0}}, 1), as_before(pad(numbers, {{0, 1}, {2, 0}}, 1))));
  }
}

}  // namespace ebb::tests
