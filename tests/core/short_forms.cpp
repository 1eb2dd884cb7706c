// Short forms of what is longer to write.
#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/tensor/tensor.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using Floats = std::vector<float>;

std::string line(int number) {
  return std::string("(") + __FILE__ + ":" + std::to_string(number) + ")";
}

}  // namespace

TEST_CASE("x += y gives the handle another tensor, and writes to none") {
  Tensor x = Tensor::from({1.f, 2.f});
  const Tensor other = x;
  x += 1;
  x *= Tensor::from({3.f, 4.f});
  x -= x / 2;
  x /= 2;
  CHECK(x.to_vector<float>() == Floats{1.5f, 3});
  CHECK(other.to_vector<float>() == Floats{1, 2});
  Tensor total = Tensor::full({}, 0);
  const Tensor w = Tensor::from({2.f, 5.f}).with_grad();
  for (int i = 1; i <= 3; ++i) total += sum(w * i);
  total.backward();
  CHECK(w.grad().to_vector<float>() == Floats{6, 6});
  const auto wrong = [&] { x += Tensor::zeros({3}); };
  CHECK_ERROR(wrong(), ShapeError, line(__LINE__ - 1));
  CHECK(x.to_vector<float>() == Floats{1.5f, 3});
}

TEST_CASE("x[i] is the part at i, in both modes") {
  const Tensor x = Tensor::from({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}).with_grad();
  CHECK(x[1].to_vector<float>() == Floats{3, 4});
  CHECK(x[-1][0].item<float>() == 5);
  const std::size_t two = 2;
  sum(x[two] * 3).backward();
  CHECK(x.grad().to_vector<float>() == Floats{0, 0, 0, 0, 3, 3});
  CHECK_ERROR(x[3], ShapeError, line(__LINE__));
  Graph graph;
  const Tensor p = graph.placeholder("p", DType::f32, {3, -1});
  Session session(graph);
  CHECK(session.run(p[0], {{p, x.detach()}}).to_vector<float>() == Floats{1, 2});
}

TEST_CASE("sums over one axis, and sizes, by number") {
  const Tensor x = Tensor::from({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  CHECK(sum(x, 1).to_vector<float>() == Floats{6, 15});
  CHECK(mean(x, -2).to_vector<float>() == Floats{2.5f, 3.5f, 4.5f});
  CHECK(sum(x, {}).item<float>() == 21);
  CHECK(x.size(0) == 2);
  CHECK(x.size(-1) == 3);
  CHECK_THROWS_AS(x.size(2), ShapeError);
}

}  // namespace ebb::tests
