// Creation operators: sizes, end points, and that a graph stores none of the values.
#include "ebb/core/ops/create.h"

#include <algorithm>
#include <limits>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/graph/create.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/ops/refuses.h"

namespace ebb::tests {
namespace {

using Floats = std::vector<float>;
using Longs = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("arange ends before its end, in steps of either sign, and may be empty") {
  CHECK(arange(4).to_vector<std::int64_t>() == Longs{0, 1, 2, 3});
  CHECK(arange(2, 7, {.step = 2}).to_vector<std::int64_t>() == Longs{2, 4, 6});
  CHECK(arange(2, 8, {.step = 2}).to_vector<std::int64_t>() == Longs{2, 4, 6});
  CHECK(arange(3, -2, {.step = -2}).to_vector<std::int64_t>() == Longs{3, 1, -1});
  CHECK(arange(3, 3).elements() == 0);
  CHECK(arange(3, 0).elements() == 0);
  CHECK(arange(0, 1, {.step = 0.25, .dtype = DType::f32}).to_vector<float>() ==
        Floats{0, 0.25, 0.5, 0.75});
  CHECK(arange(250, 256, {.dtype = DType::u8}).to_vector<std::uint8_t>() ==
        std::vector<std::uint8_t>{250, 251, 252, 253, 254, 255});
  CHECK(arange(0x1p53 - 2, 0x1p53).to_vector<std::int64_t>() ==
        Longs{(1LL << 53) - 2, (1LL << 53) - 1});
  const Longs many = arange(-5, 100'000).to_vector<std::int64_t>();
  bool right = many.size() == 100'005;
  for (std::size_t i = 0; i < many.size(); ++i)
    right = right && many[i] == static_cast<std::int64_t>(i) - 5;
  CHECK(right);
}

TEST_CASE("linspace has both its ends exactly, and numbers rounded once") {
  CHECK(linspace(0, 1, 5).to_vector<float>() == Floats{0, 0.25, 0.5, 0.75, 1});
  CHECK(linspace(2, -2, 2).to_vector<float>() == Floats{2, -2});
  CHECK(linspace(3, 9, 1).to_vector<float>() == Floats{3});
  CHECK(linspace(3, 9, 0).elements() == 0);
  for (const std::int64_t count : {3, 10, 16, 50, 1000}) {
    const auto values = linspace(0.1, 0.7, count, {.dtype = DType::f64}).to_vector<double>();
    CHECK(values.front() == 0.1);
    CHECK(values.back() == 0.7);
    CHECK(std::is_sorted(values.begin(), values.end()));
  }
}

TEST_CASE("tril and triu keep NaN on their side only, and any diagonal is one") {
  const Tensor x = Tensor::full({2, 2, 2}, std::numeric_limits<double>::quiet_NaN());
  const auto nans = [](const Tensor& y) { return sum(isnan(y)).item<std::int64_t>(); };
  CHECK(nans(tril(x)) == 6);
  CHECK(nans(triu(x, 1)) == 2);
  CHECK(tril(x, -1).item<float>({0, 0, 1}) == 0);
  CHECK(nans(tril(x, 100)) == 8);
  CHECK(nans(tril(x, std::numeric_limits<std::int64_t>::max())) == 8);
  CHECK(nans(triu(x, std::numeric_limits<std::int64_t>::max())) == 0);
  CHECK(nans(tril(x, std::numeric_limits<std::int64_t>::min())) == 0);
  CHECK(nans(triu(x, std::numeric_limits<std::int64_t>::min())) == 8);
  const Tensor causal = tril(Tensor::full({3, 3}, 1, DType::boolean));
  CHECK(cast(causal, DType::f32).to_vector<float>() == Floats{1, 0, 0, 1, 1, 0, 1, 1, 1});
}

TEST_CASE("A graph computes what it makes in each run, and stores no values of it") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {512, 512});
  const memory::CachingAllocator& allocator = Device::cpu().runtime().allocator();
  const std::size_t before = allocator.stats().requested.current;
  const Tensor index = cast(arange(graph, 0, 512), DType::f32), one = full(graph, {}, 1);
  const Tensor y = sum(x * eye(graph, 512) + index) +
                   sum(linspace(graph, 0, 1, 2) * one * ones(graph, {2}) + zeros(graph, {2}));
  CHECK(y.is_symbolic());
  CHECK(allocator.stats().requested.current == before);
  Session session(graph);
  for (const float value : {1.f, 3.f}) {
    const float total = session.run(y, {{x, Tensor::full({512, 512}, value)}}).item<float>();
    CHECK(total == 512 * value + 512.f * 511 * 256 + 1);
  }
  EBB_REFUSES(eye(graph, -1), ShapeError, "[eye] takes no matrix");
}

TEST_CASE("randint draws each of its integers as often as the others, and no other") {
  set_seed(Seed{3});
  const auto drawn = randint(-2, 3, {100'000}).to_vector<std::int64_t>();
  std::vector<int> counts(5);
  for (const std::int64_t value : drawn) {
    REQUIRE((value >= -2 && value < 3));
    ++counts[static_cast<std::size_t>(value + 2)];
  }
  for (const int count : counts) CHECK(std::abs(count - 20'000) < 600);  // 4.7 deviations
  set_seed(Seed{3});
  CHECK(randint(-2, 3, {100'000}).to_vector<std::int64_t>() == drawn);
  CHECK(randint(-2, 3, {100'000}).to_vector<std::int64_t>() != drawn);
  constexpr std::int64_t kInts = std::int64_t{1} << 31;
  const auto wide = randint(-kInts, kInts, {1000}, {.dtype = DType::i32}).to_vector<std::int32_t>();
  CHECK(std::count_if(wide.begin(), wide.end(), [](int x) { return x < 0; }) > 400);
  CHECK(std::count_if(wide.begin(), wide.end(), [](int x) { return x >= 0; }) > 400);
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  CHECK(randint(kMost - 1, kMost, {2}).to_vector<std::int64_t>() == Longs{kMost - 1, kMost - 1});

  Graph graph;
  EBB_REFUSES(randint(3, 3, {2}), Error, "[randint] takes up to 2^32 integers of i64, not [3, 3)");
  EBB_REFUSES(randint(0, 257, {2}, {.dtype = DType::u8}), Error, "integers of u8, not [0, 257)");
  EBB_REFUSES(randint(graph, 0, (1LL << 32) + 1, {2}), Error, "takes up to 2^32 integers of i64");
  EBB_REFUSES(randint(0, 2, {2}, {.dtype = DType::f32}), ShapeError,
              "makes i32, i64 or u8, not f32");
}

TEST_CASE("What cannot be made is refused, in words and by line") {
  EBB_REFUSES(arange(0, 1, {.step = 0}), Error, "[arange] takes finite numbers and a step that is");
  EBB_REFUSES(arange(0.5, 3), Error, "[arange] i64 does not have the number 0.5");
  EBB_REFUSES(arange(0, 3, {.step = 0.5}), Error, "[arange] i64 does not have the number 0.5");
  EBB_REFUSES(arange(250, 258, {.dtype = DType::u8}), Error, "u8 does not have the number 257");
  EBB_REFUSES(arange(2, {.dtype = DType::boolean}), Error, "[arange] makes numbers, not bool");
  EBB_REFUSES(arange(1e300), Error, "[arange] that would be");
  EBB_REFUSES(linspace(0, 1, -1), Error, "[linspace] takes no count of -1");
  EBB_REFUSES(linspace(0, 1, 3, {.dtype = DType::i32}), Error, "[linspace] makes f32, f64");
  EBB_REFUSES(eye(-2), ShapeError, "[eye] takes no matrix of -2 rows and -2 columns");
  EBB_REFUSES(eye(2, -1), ShapeError, "[eye] takes no matrix of 2 rows and -1 columns");
  EBB_REFUSES(ones({-1}), ShapeError, "[ones] the shape [?] is open");
  EBB_REFUSES(zeros({-1}), ShapeError, "[zeros] the shape [?] is open");
  EBB_REFUSES(full({-1}, 2), ShapeError, "[full] the shape [?] is open");
  EBB_REFUSES(tril(Tensor::zeros({3})), ShapeError, "[tril] takes matrices [..., m, n]");
}

}  // namespace ebb::tests
