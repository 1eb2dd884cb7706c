#include "ebb/core/autodiff/recompute.h"

#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"

using namespace ebb;

namespace {

struct Result {
  std::vector<float> dx;
  std::size_t planned, measured;
};

Result train(bool recomputes) {
  set_seed(Seed{5});
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 64});
  const Tensor w = Tensor::full({64, 64}, 0.02);
  const auto block = [w](const Tensor& in) {
    return dropout(tanh(square(tanh(matmul(in, w))) + 0.1), 0.25, Phase::training);
  };
  Tensor y = x;
  for (int i = 0; i < 8; ++i) y = recomputes ? recompute(block, y) : block(y);
  const Tensor dx = gradients(mean(y), {x})[0];
  Session session(graph);
  const Tensor value = session.run(dx, {{x, Tensor::full({128, 64}, 0.3)}});
  return {value.to_vector<float>(), graph.plan({dx}, {{x, {128, 64}}}, Device::cpu()).peak_bytes,
          session.stats().allocated.peak};
}

}  // namespace

TEST_CASE("recompute in a graph gives the same bits with the planned saving") {
  const Result plain = train(false), again = train(true);
  CHECK(plain.dx == again.dx);
  CHECK(plain.planned == plain.measured);
  CHECK(again.planned == again.measured);
  CHECK(again.planned < plain.planned * 2 / 3);
}
