// Sorting, extremes, running sums and products, at NaN, equal values and zeros.
#include "ebb/core/ops/order.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "ebb/core/base/error.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/scan.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/statistics.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/ops/refuses.h"

namespace ebb::tests {
namespace {

using Floats = std::vector<float>;
using Doubles = std::vector<double>;
using Longs = std::vector<std::int64_t>;

Doubles doubles(const Tensor& x) { return x.to_vector<double>(); }

}  // namespace

TEST_CASE("NaN is the extreme, the first one of several, wherever it stands") {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const std::int64_t n : {1, 2, 17, 100, 1500, 70'000})
      for (const std::int64_t columns : {1, 3}) {
        if (on_emulated_cuda() && n > 10'000 && dtype != DType::f32) continue;
        CAPTURE(name(dtype), n, columns);
        for (const std::int64_t place : {std::int64_t{0}, n / 2, n - 1}) {
          Doubles values(static_cast<std::size_t>(n * columns), kInfinity);
          values[0] = -kInfinity;
          for (std::int64_t k = place; k < n; k += 1 + n / 3)
            values[static_cast<std::size_t>(k * columns)] = k % 2 == 0 ? kNaN : -kNaN;
          const Tensor x = cast(Tensor::from(values, {n, columns}), dtype);
          CHECK(std::isnan(doubles(max(x, 0))[0]));
          CHECK(std::isnan(doubles(min(x, 0))[0]));
          CHECK(argmax(x, 0).to_vector<std::int64_t>()[0] == place);
          CHECK(argmin(x, 0).to_vector<std::int64_t>()[0] == place);
          CHECK(std::isnan(doubles(max(x))[0]));
          CHECK(argmin(x).item<std::int64_t>() == place * columns);
          if (columns == 3) CHECK(doubles(max(x, 0))[2] == kInfinity);
        }
      }
}

TEST_CASE("infinities, the ends of whole numbers and both zeros have their places") {
  CHECK(max(Tensor::from({-kInfinity, -kInfinity})).item<float>() == -kInfinity);
  CHECK(min(Tensor::from({kInfinity, kInfinity})).item<float>() == kInfinity);
  CHECK(argmax(Tensor::from({-0.f, 0.f})).item<std::int64_t>() == 0);
  CHECK(argmin(Tensor::from({0.f, -0.f})).item<std::int64_t>() == 0);
  constexpr auto kLow = std::numeric_limits<std::int64_t>::min();
  constexpr auto kHigh = std::numeric_limits<std::int64_t>::max();
  const Tensor ends = Tensor::from({kHigh - 1, kLow, kHigh, kLow + 1});
  CHECK(max(ends).item<std::int64_t>() == kHigh);
  CHECK(min(ends).item<std::int64_t>() == kLow);
  CHECK(argmin(Tensor::from({kHigh, kHigh})).item<std::int64_t>() == 0);
  CHECK(argmax(Tensor::from({kLow, kLow})).item<std::int64_t>() == 0);
}

TEST_CASE("NaN counts as larger than any number where elements are put into order") {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    CAPTURE(name(dtype));
    const Tensor x =
        cast(Tensor::from({1.f, kNaN, -kInfinity, kInfinity, -kNaN, 0.f, -0.f, -1.f}), dtype);
    CHECK(argsort(x).to_vector<std::int64_t>() == Longs{2, 7, 5, 6, 0, 3, 1, 4});
    CHECK(argsort(x, {.descending = true}).to_vector<std::int64_t>() ==
          Longs{1, 4, 3, 0, 5, 6, 7, 2});
    CHECK(topk(x, 3).indices.to_vector<std::int64_t>() == Longs{1, 4, 3});
    CHECK(topk(x, 2, {.largest = false}).indices.to_vector<std::int64_t>() == Longs{2, 7});
  }
  // A long row, where topk keeps only the best elements so far.
  Floats values(3000, 1.f);
  values[2000] = kNaN;
  values[2999] = -kInfinity;
  const Tensor x = Tensor::from(values, {3000});
  CHECK(topk(x, 3).indices.to_vector<std::int64_t>() == Longs{2000, 0, 1});
  CHECK(topk(x, 3, {.largest = false}).indices.to_vector<std::int64_t>() == Longs{2999, 0, 1});
}

TEST_CASE("running sums and products of nothing are nothing, and those of integers wrap around") {
  CHECK(cumsum(Tensor::zeros({2, 0}), 1).shape() == Shape{2, 0});
  CHECK(cumprod(Tensor::zeros({2, 0}), 1).shape() == Shape{2, 0});
  const Tensor billions = Tensor::from({2'000'000'000, 2'000'000'000});
  CHECK(cumsum(billions, 0).to_vector<std::int32_t>()[1] == -294'967'296);
  const Tensor whole = Tensor::from({65'537, 65'537, 3});
  CHECK(cumprod(whole, 0).to_vector<std::int32_t>() ==
        std::vector<std::int32_t>{65'537, 131'073, 393'219});
  const std::uint64_t large = 0xFFFFFFFB;  // its square is not exact in a double
  CHECK(cumprod(Tensor::from(Longs{0xFFFFFFFB, 0xFFFFFFFB, 7}), 0).to_vector<std::int64_t>() ==
        Longs{0xFFFFFFFB, static_cast<std::int64_t>(large * large),
              static_cast<std::int64_t>(large * large * 7)});
  EBB_REFUSES(cumprod(Tensor::zeros({2, 3}), 2), ShapeError, "[cumprod] there is no axis 2");
  EBB_REFUSES(cumprod(Tensor::zeros({2}, DType::boolean), 0), ShapeError, "[cumprod] takes f32");
}

TEST_CASE(
    "a running product of a long row may overflow on a part of it, behind a 0 or a small one") {
  std::vector<double> numbers(5000, 1);
  const auto last = [&](DType dtype) {
    const Tensor all = cumprod(cast(Tensor::from(numbers), dtype), 0);
    return cast(all, DType::f64).to_vector<double>()[4999];
  };
  for (std::size_t i = 0; i < 1024; ++i) {
    if (i < 1000) numbers[i] = 0.5;
    numbers[1024 + i] = 2;
    if (i < 512) numbers[2048 + i] = 2;
    if (i < 500) numbers[3000 + i] = 0.5;
  }
  CHECK(last(DType::f64) == 0x1p36);
  numbers[1000] = 0;
  for (const DType dtype : {DType::f32, DType::f64}) CHECK(last(dtype) == 0);
  numbers.assign(5000, 1e3);
  for (const DType dtype : {DType::f32, DType::f64}) CHECK(last(dtype) == kInfinity);
  numbers.assign(5000, 1);
  numbers[0] = 0x1p900;
  numbers[4] = numbers[5] = 0x1p-600;  // of one thread's elements
  CHECK(last(DType::f64) == 0x1p-300);
}

TEST_CASE("the gradient of running products takes no more at once than three f64 of their size") {
  const Tensor x = Tensor::full({64, 1024}, 1.5).with_grad();
  const std::size_t before = memory::stats(Device::cpu()).allocated.current;
  const memory::PeakScope peak(Device::cpu());
  gradients(sum(cumprod(x, 0)), {x});
  CHECK(peak.bytes() - before < 25 * x.bytes() / 4);
}

namespace {
// A polynomial in which no x[i] is squared. Coefficients are indexed by the bit set of the x[i] in
// the term.
using Polynomial = Doubles;

Polynomial derivative(const Polynomial& f, std::size_t i) {
  Polynomial d(f.size());
  for (std::size_t term = 0; term < f.size(); ++term)
    if ((term >> i & 1) == 0) d[term] = f[term | std::size_t{1} << i];
  return d;
}
double value(const Polynomial& f, const Doubles& x) {
  double sum = 0;
  for (std::size_t term = 0; term < f.size(); ++term) {
    double product = f[term];
    for (std::size_t i = 0; i < x.size(); ++i) product *= (term >> i & 1) != 0 ? x[i] : 1;
    sum += product;
  }
  return sum;
}

// Compares derivatives of every order with the polynomial's, eager and in a graph. Each order
// differentiates the gradient before it times v. Returns "" or the first order that differs.
std::string difference(Polynomial f, const Doubles& row, DType dtype,
                       const std::function<Tensor(const Tensor&)>& function) {
  const Doubles v = {1, -2, 3, -4, 5};
  const auto all = [&](const Tensor& x) {
    Tensors orders;
    Tensor y = function(x);
    for (std::size_t order = 0; order < row.size(); ++order) {
      orders.push_back(gradients(y, {x}, {.create_graph = true})[0]);
      y = sum(orders.back() * cast(Tensor::from(v), dtype));
    }
    return orders;
  };
  const Tensor values = cast(Tensor::from(row), dtype);
  Graph graph;
  const Tensor x = graph.placeholder("x", dtype, {-1});
  const Tensors eager = all(values.detach().with_grad()), symbolic = all(x);
  Session session(graph);
  for (std::size_t order = 0; order < row.size(); ++order) {
    Polynomial along(f.size());
    Doubles expected;
    for (std::size_t i = 0; i < row.size(); ++i) {
      const Polynomial d = derivative(f, i);
      expected.push_back(value(d, row));
      for (std::size_t term = 0; term < f.size(); ++term) along[term] += v[i] * d[term];
    }
    f = along;
    if (doubles(eager[order]) != expected) return "eager, order " + std::to_string(order + 1);
    if (doubles(session.run(symbolic[order], {{x, values}})) != expected)
      return "graph, order " + std::to_string(order + 1);
  }
  return "";
}
}  // namespace

TEST_CASE("derivatives of products are right in every order, however many elements are 0") {
  const std::vector<Doubles> rows = {{2, 4, -1, 8, .5}, {0, 4, -1, 8, .5}, {2, 4, 0, 8, .5},
                                     {2, 4, -1, 8, 0},  {2, 0, -1, 0, .5}, {0, 0, 4, 2, .5},
                                     {2, 0, 0, 0, .5},  {0, 2, 0, 0, 0},   {0, 0, 0, 0, 0}};
  for (const DType dtype : {DType::f64, DType::f32})
    for (const Doubles& row : rows) {
      CAPTURE(name(dtype), row);
      Polynomial all(32);
      all.back() = 3;
      CHECK(difference(all, row, dtype, [](const Tensor& x) { return prod(x) * 3; }) == "");
      for (const bool exclusive : {false, true})
        for (const bool reverse : {false, true}) {
          CAPTURE(exclusive, reverse);
          const Doubles dy = {1, 10, 100, 1000, 10000};
          Polynomial running(32);
          for (std::size_t k = 0; k < row.size(); ++k) {
            std::size_t term = 0;
            for (std::size_t i = 0; i < row.size(); ++i)
              if (i == k ? !exclusive : (i < k) != reverse) term |= std::size_t{1} << i;
            running[term] += dy[k];
          }
          CHECK(difference(running, row, dtype, [&](const Tensor& x) {
                  const Tensor y = cumprod(x, 0, {.exclusive = exclusive, .reverse = reverse});
                  return sum(y * cast(Tensor::from(dy), dtype));
                }) == "");
        }
    }
}

TEST_CASE("gradients of products of long rows and of none, over any axes, are right") {
  constexpr std::size_t kSize = 2500;
  Doubles row(kSize), expected(kSize), others(kSize);
  for (std::size_t i = 0; i < kSize; ++i) row[i] = i % 3 == 0 ? -1 : i % 100 < 50 ? 2 : 0.5;
  row[1300] = 0;
  double before = 1;
  for (std::size_t i = 0; i < kSize; ++i) {
    double behind = 1;  // product of the elements after i
    for (std::size_t k = i; k < kSize; ++k) {
      if (k > i) behind *= row[k];
      expected[i] += before * behind;
    }
    others[i] = before * behind;
    before *= row[i];
  }
  // A matrix whose columns are this row.
  for (const std::int64_t columns : {1, 40}) {
    CAPTURE(columns);
    const Tensor rows = broadcast_to(reshape(Tensor::from(row), {-1, 1}), {-1, columns}),
                 x = cast(rows, DType::f32).detach().with_grad();
    const auto worst = [&](const Tensor& y, const Doubles& right) {
      const Doubles got = doubles(gradients(sum(y), {x})[0]);
      double most = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        const double r = right[i / static_cast<std::size_t>(columns)];
        most = std::max(most, std::abs(got[i] - r) / std::max(1.0, std::abs(r)));
      }
      return most;
    };
    CHECK(worst(cumprod(x, 0), expected) < 1e-6);
    CHECK(worst(prod(x, 0), others) < 1e-6);
    const Tensor parts = transpose(reshape(x, {50, -1, columns}), 1, 2);
    CHECK(worst(prod(parts, {0, 2}), others) < 1e-6);
  }
  const Tensor none = Tensor::zeros({2, 0}).with_grad();
  CHECK(gradients(sum(prod(none, 1)) + sum(cumprod(none, 1)), {none})[0].shape() == Shape{2, 0});
}

TEST_CASE(
    "the gradients of running products are 0 where a zero is before, whatever overflows behind") {
  const auto slope = [](const Doubles& row) {
    const Tensor x = Tensor::from(row).with_grad();
    return doubles(gradients(sum(cumprod(x, 0)), {x})[0]);
  };
  CHECK(slope({0, 1e200, 1e200}) == Doubles{kInfinity, 0, 0});
  CHECK(slope({0, 1e200, 0, 1e200, 1e200}) == Doubles{1 + 1e200, 0, 0, 0, 0});
  const Doubles two = slope({0, 1e200, 1e200, 0, 5});
  CHECK(two[3] == 0);
  CHECK(two[4] == 0);
}

TEST_CASE("the gradient of running products of 16 bits is summed in float") {
  Doubles values(2000, 1);
  values[0] = 64;  // 2000 times 64 exceeds f16
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensor x = cast(Tensor::from(values), dtype).with_grad();
    const Doubles slope = doubles(gradients(sum(cumprod(x, 0)), {x})[0]);
    CHECK(slope[0] == 2000);
    CHECK(slope[1000] == 64000);
  }
}

TEST_CASE("orders that make no sense are refused, in words") {
  EBB_REFUSES(sort(Tensor::zeros({})), ShapeError, "[sort] there is no axis -1");
  EBB_REFUSES(topk(Tensor::zeros({2, 3}), 4), ShapeError,
              "[topk] there are no 4 elements along axis 1; the input is f32[2, 3]");
  EBB_REFUSES(topk(Tensor::zeros({2, 3}), -1), ShapeError, "[topk] there are no -1 elements");
  EBB_REFUSES(cumsum(Tensor::zeros({2, 3}), 2), ShapeError, "[cumsum] there is no axis 2");
  EBB_REFUSES(cumsum(Tensor::zeros({2}, DType::boolean), 0), ShapeError, "[cumsum] takes f32");
  CHECK(topk(Tensor::zeros({2, 0}), 0).values.shape() == Shape{2, 0});
  CHECK(sort(Tensor::zeros({0, 4})).shape() == Shape{0, 4});
  CHECK(sort(Tensor::zeros({4, 0})).shape() == Shape{4, 0});
}

TEST_CASE("the extreme of nothing is refused, but there may be none to ask for") {
  EBB_REFUSES(max(Tensor::zeros({2, 0}), 1), ShapeError,
              "[max] there is none over no elements; the input is f32[2, 0] (");
  EBB_REFUSES(min(Tensor::zeros({0})), ShapeError, "[min] there is none");
  EBB_REFUSES(argmax(Tensor::zeros({0, 3}), 0), ShapeError, "[argmax] there is none");
  EBB_REFUSES(argmin(Tensor::zeros({0, 3})), ShapeError, "[argmin] there is none");
  CHECK(max(Tensor::zeros({0, 3}), 1).shape() == Shape{0});
  CHECK(argmin(Tensor::zeros({0, 0}), 0).shape() == Shape{0});
  Graph graph;
  const Tensor open = graph.placeholder("x", DType::f32, {-1, 0}), y = max(open, 1);
  Session session(graph);
  CHECK(session.run(y, {{open, Tensor::zeros({0, 0})}}).shape() == Shape{0});
  EBB_REFUSES(session.run(y, {{open, Tensor::zeros({2, 0})}}), ShapeError, "[max] there is none");
  EBB_REFUSES(max(Tensor::zeros({2}), 1), ShapeError, "[max] there is no axis 1");
  EBB_REFUSES(max(Tensor::zeros({2, 3}), {.axes = {0, -2}}), ShapeError, "given twice");
  EBB_REFUSES(max(Tensor::zeros({2}), {.axis = std::int64_t{1} << 32}), ShapeError, "no axis");
  EBB_REFUSES(argmin(Tensor::zeros({2}), -2), ShapeError, "[argmin] there is no axis -2");
}

}  // namespace ebb::tests
