// The C++ blocks of README and docs, each in a scope where its names mean what the page says. A
// block that no longer compiles stops the build.
#include <cmath>
#include <iostream>
#include <thread>

#include "ebb/core/kernels/functors/activations.h"
#include "ebb/core/memory/serve.h"
#include "ebb/core/ops/pointwise_rules.h"
#include "ebb/custom_operator.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"

namespace users {  // outside of ebb, with the using directives that the page shows
#include "ebb_docs/extending_4.inc"
#include "ebb_docs/extending_5.inc"
#include "ebb_docs/extending_6.inc"
}  // namespace users

namespace {
using namespace ebb;
using namespace ebb::literals;

#include "ebb_docs/README_2.inc"
#include "ebb_docs/compile_1.inc"
#include "ebb_docs/memory_3.inc"

// Names that the pages' fragments use; each fragment is a function of its own.
struct Pages {
  Device device;
  Graph graph;
  Parameters params;
  models::Mlp model;
  models::Lstm lstm;
  models::Dense head;
  optim::Adam adam, optimizer;
  DataLoader batches;
  Session session;
  Tensor x, y, batch, labels, sequences, lengths, start, table, output, input, scores;

  void data_1() {
#include "ebb_docs/data_1.inc"
  }
  void data_2() {
#include "ebb_docs/data_2.inc"
  }
  void data_3() {
#include "ebb_docs/data_3.inc"
  }
  void devices_1() {
#include "ebb_docs/devices_1.inc"
  }
  void memory_1() {
#include "ebb_docs/memory_1.inc"
  }
  void memory_2() {
#include "ebb_docs/memory_2.inc"
  }
  void memory_3() {
#include "ebb_docs/memory_4.inc"
  }
  void statistics_1(Session& session) {
#include "ebb_docs/statistics_1.inc"
  }
  void statistics_2() {
#include "ebb_docs/statistics_2.inc"
  }
  void statistics_3() {
#include "ebb_docs/statistics_3.inc"
  }
  void freeze() {
#include "ebb_docs/coming-from_1.inc"
  }
  void average() {
#include "ebb_docs/coming-from_2.inc"
  }
  void decay() {
#include "ebb_docs/coming-from_3.inc"
  }
  void several_losses() {
#include "ebb_docs/coming-from_4.inc"
  }
  void by_hand() {
#include "ebb_docs/coming-from_5.inc"
  }
  void of_different_lengths() {
#include "ebb_docs/coming-from_6.inc"
  }
  void decode() {
#include "ebb_docs/coming-from_7.inc"
  }
  void decode_with_attention(const models::MultiHeadAttention& attention, std::int64_t heads,
                             std::int64_t width, Tensor (*next)(const Tensor&)) {
#include "ebb_docs/coming-from_8.inc"
  }
  void inference() {
#include "ebb_docs/coming-from_9.inc"
  }
};

}  // namespace

namespace ebb::extending {
using detail::from_x, detail::unary;
namespace functor_alone {
#include "ebb_docs/extending_1.inc"
}
extern const OpDef softplus_op;
#include "ebb_docs/extending_2.inc"
#define EBB_UNARY(name, Functor) Tensor name(const Operand& x);
#include "ebb_docs/extending_3.inc"
#undef EBB_UNARY
}  // namespace ebb::extending

TEST_CASE("The operator with a kernel of its own in docs/extending.md adds up, gradient and all") {
  const Tensor x = Tensor::from({1.f, 2.f, 4.f}).with_grad();
  CHECK(users::running_sum(x).to_vector<float>() == std::vector<float>{1, 3, 7});
  CHECK(gradients(sum(users::running_sum(x)), {x})[0].to_vector<float>() ==
        std::vector<float>{3, 2, 1});
  CHECK(users::swish(Tensor::from({2.f}), 1).item<float>() ==
        ebb::tests::Approx(2 / (1 + std::exp(-2.0))));
}
