// Memory that passes from one tensor to another carries nothing over.
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"

using namespace ebb;

namespace {
using Floats = std::vector<float>;

Tensor pretrained() {
  const Parameters p(Device::cpu(), Seed{1});
  return p.declare("w", {2}, initializers::constant(1)).detach();
}
}  // namespace

TEST_CASE("a result in memory that was a parameter's is no state: its updates have a history") {
  const Tensor leaf = Tensor::from({1.f, 2.f}).with_grad();
  const Tensor r = pretrained() * 1;
  sum(add_assign(r, leaf * 3) * leaf).backward();
  CHECK(leaf.grad().to_vector<float>() == Floats{7, 13});
}

TEST_CASE("a gradient in memory that was updated with a history is none that was") {
  const Parameters p(Device::cpu(), Seed{1});
  const Tensor w = p.declare("w", {3, 2}, initializers::constant(.5));
  const Tensor b = p.declare("b", {2, 2}, initializers::constant(.25));
  const auto loss = [&] {
    Tensor t = matmul(Tensor::full({2, 3}, 1), w);
    t = add_assign(t, b);
    return softmax_cross_entropy(t, Tensor::from({0, 1}));
  };
  const optim::Sgd sgd({.learning_rate = .1});
  const float first = sgd.minimize(loss(), p).item<float>();
  CHECK(loss().item<float>() < first);

  const Tensor leaf = Tensor::full({2}, 2).with_grad();
  const auto detached = [&] {
    Tensor t = Tensor::zeros({2});
    t = add_assign(t, leaf);
    return t.detach();
  };
  const Tensor target = detached() * 2;
  CHECK((target - leaf).to_vector<float>() == Floats{2, 2});
}

TEST_CASE("a batch may be updated with a history, and the next one is as the first was") {
  const DataSet data(Tensor::full({6, 2}, 1), Tensor::full({6, 1}, 0));
  const Tensor leaf = Tensor::full({2, 2}, 2).with_grad();
  int batches = 0;
  for (const Batch& batch : DataLoader(data, {.batch = 2})) {
    if (batches++ == 0) {
      const Tensor x = add_assign(batch.input, leaf);
      sum(x * x).backward();
    } else {
      sum(batch.input * leaf).backward();
    }
  }
  CHECK(batches == 3);
  CHECK(leaf.grad().to_vector<float>() == Floats{8, 8, 8, 8});
}

TEST_CASE("a draw that fails leaves the random numbers where they were") {
  const auto numbers = [](const auto& failing) {
    set_seed(Seed{5});
    CHECK_THROWS_AS(failing(), Error);
    return normal({3}).to_vector<float>();
  };
  set_seed(Seed{5});
  const Floats expected = normal({3}).to_vector<float>();
  CHECK(numbers([] { normal({3}, {.dtype = DType::i32}); }) == expected);
  CHECK(numbers([] { normal_like(Tensor::from({1, 2})); }) == expected);
  CHECK(numbers([] { dropout(Tensor::from({1, 2}), 0.5, Phase::training); }) == expected);
  CHECK(numbers([] { categorical(Tensor::zeros({2, 0})); }) == expected);
}
