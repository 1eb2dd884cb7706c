// The C++ blocks of README and docs. A block that no longer compiles stops the build; a block that
// throws fails its test.
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
#include "ebb_docs/own_3.inc"
#include "ebb_docs/own_4.inc"
}  // namespace users

namespace {
using namespace ebb;
using namespace ebb::literals;

struct Classifier {
  models::Dense encoder, head;
  explicit Classifier(const Parameters& p)
      : encoder(p.scope("encoder"), 64, 32, Activation::relu), head(p.scope("head"), 32, 10) {}
  Tensor operator()(const Tensor& images) const { return head(encoder(images)); }
};

#include "ebb_docs/own_1.inc"

// The names that blocks use: a model with a batch, and the same as a graph.
struct Names {
  Device device = Device::cpu();
  DataSet digits = DataSet::csv("examples/data/digits.csv", {.label = "digit"}).take(100);
  DataLoader batches{digits, {.batch = 50}};
  Tensor x = digits.inputs(), y = digits.targets();
  Parameters params{device, Seed{7}};
  Classifier model{params};
  optim::Adam adam, optimizer;

  Parameters writer{device, Seed{7}};  // chooses one of ten words after another
  models::Lstm lstm{writer.scope("lstm"), 4, {.hidden = 8}};
  models::Dense head{writer.scope("head"), 8, 10};
  models::MultiHeadAttention attention{Parameters(device, Seed{7}), 64, 4};
  Tensor table = normal({10, 4}), start = Tensor::zeros({2, 1}, DType::i64);
  Tensor sequences = normal({2, 5, 4}), lengths = Tensor::from({5, 3});

  Graph graph;
  Tensor input = graph.placeholder("x", DType::f32, {-1, 64});
  Tensor target = graph.placeholder("y", DType::i32, {-1});
  Parameters variables{graph, Seed{7}};
  Tensor output = Classifier(variables)(input), loss = softmax_cross_entropy(output, target);
  Session session{graph, {.device = device}};

  Names() {
    session.initialize(variables);
    params.save("run.safetensors");
    save_safetensors("model.safetensors", {{"lstm.weight_ih_l0", ones({32, 4})},
                                           {"lstm.weight_hh_l0", ones({32, 8})},
                                           {"lstm.bias_ih_l0", ones({32})},
                                           {"lstm.bias_hh_l0", ones({32})},
                                           {"fc.weight", ones({10, 8})},
                                           {"fc.bias", ones({10})}});
  }
  ~Names() { memory::set_limit(device, {}); }
};

#include "ebb_docs/tests.inc"

}  // namespace

namespace ebb::extending {
using detail::from_x, detail::unary;
namespace functor_alone {
#include "ebb_docs/extending_1.inc"
}
extern const OpDef softplus_op;
#include "ebb_docs/extending_2.inc"

#define EBB_FAMILY "ebb_docs/extending_3.inc"
#include "ebb/core/ops/define_pointwise.inc"
}  // namespace ebb::extending

TEST_CASE("The operator that docs/extending.md adds is softplus, gradient and all") {
  const Tensor x = Tensor::from({2.f}).with_grad(), y = extending::softplus(x);
  const ebb::tests::Approx expected(std::log1p(std::exp(2.0)));
  CHECK(y.item<float>() == expected);
  CHECK(extending::functor_alone::Softplus()(2.f) == expected);
  CHECK(gradient(y, x).item<float>() == ebb::tests::Approx(1 / (1 + std::exp(-2.0))));
}

TEST_CASE("The operators of docs/guide/own.md are what they are called, gradients and all") {
  const Tensor x = Tensor::from({1.f, 2.f, 4.f}).with_grad();
  CHECK(users::running_sum(x).to_vector<float>() == std::vector<float>{1, 3, 7});
  CHECK(gradients(sum(users::running_sum(x)), {x})[0].to_vector<float>() ==
        std::vector<float>{3, 2, 1});
  CHECK(users::swish(Tensor::from({2.f}), 1).item<float>() ==
        ebb::tests::Approx(2 / (1 + std::exp(-2.0))));
  CHECK(check_gradient([](const Tensors& in) { return users::swish(in[0], 1.5); },
                       {Tensor::from({-1.0, 0.5})}));
}
