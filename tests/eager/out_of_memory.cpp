// Every allocation of an eager step fails once.
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/failing_allocation.h"

using namespace ebb;
using ebb::tests::Bytes;
using ebb::tests::fails_at;

namespace {

struct Model {
  Model()
      : first(parameters.declare("first", {8, 16}, initializers::uniform(-1, 1))),
        second(parameters.declare("second", {16, 8}, initializers::uniform(-1, 1))) {}
  Tensor loss() const { return mean(square(matmul(tanh(matmul(x, first)), second))); }

  const Tensor x = Tensor::full({4, 8}, 0.5);
  Parameters parameters{Device::cpu(), Seed{1}};
  Tensor first, second;
};

}  // namespace

TEST_CASE("a backward pass that runs out of memory frees what it made, wherever it fails") {
  Model model;
  model.loss().backward();
  const std::vector<float> wanted = model.first.grad().to_vector<float>();
  model.parameters.zero_grad();
  const Bytes bytes;
  std::size_t failures = 0;
  for (;; ++failures) {
    Tensor loss = model.loss();
    if (!fails_at(failures, [&] { loss.backward(); })) break;
    loss = Tensor();
    CHECK(bytes.now() == 0);
    CHECK_FALSE(model.first.grad().defined());
    CHECK_FALSE(model.second.grad().defined());
  }
  CHECK(failures >= 5);
  CHECK(model.first.grad().to_vector<float>() == wanted);
}

TEST_CASE("gradients that a failed pass had added to are refused until zero_grad") {
  Model model;
  const optim::Adam adam;
  int refused = 0;
  for (std::size_t n = 0;; ++n) {
    model.parameters.zero_grad();
    model.loss().backward();
    const Tensor loss = model.loss();
    if (!fails_at(n, [&] { loss.backward(); })) break;
    try {
      adam.step(model.parameters);
    } catch (const Error& error) {
      ++refused;
      CHECK(std::string(error.what()).find("incomplete") != std::string::npos);
      CHECK_THROWS_AS(adam.step(model.parameters), Error);
      Tensors given, views, sums;
      for (const auto& [name, tensor] : model.parameters.entries()) {
        given.push_back(tensor.grad());
        views.push_back(reshape(tensor.grad(), tensor.shape()));
        sums.push_back(tensor.grad() + tensor.grad());
      }
      CHECK_ERROR(adam.apply(given, model.parameters), Error, "[apply] the gradient of");
      CHECK_ERROR(adam.apply(views, model.parameters), Error, "incomplete");
      CHECK_NOTHROW(adam.apply(sums, model.parameters));  // the caller's own gradients
      model.parameters.zero_grad();
      model.loss().backward();
      CHECK_NOTHROW(adam.step(model.parameters));
    }
  }
  CHECK(refused > 0);
}

TEST_CASE("a batch norm that runs out of memory has changed neither of the running statistics") {
  const Tensor x = Tensor::from({{1.f, 2.f}, {3.f, 5.f}, {8.f, 13.f}}),
               scale = Tensor::full({2}, 1), shift = Tensor::zeros({2}), mean = Tensor::zeros({2}),
               variance = Tensor::full({2}, 1);
  const Bytes bytes;
  std::size_t failures = 0;
  for (; fails_at(failures,
                  [&] { batch_norm(x, scale, shift, mean, variance, {.phase = Phase::training}); });
       ++failures) {
    CHECK(bytes.now() == 0);
    CHECK(mean.to_vector<float>() == std::vector<float>{0, 0});
    CHECK(variance.to_vector<float>() == std::vector<float>{1, 1});
  }
  CHECK(failures > 3);
  CHECK(mean.to_vector<float>()[0] > 0.3f);
  CHECK(variance.to_vector<float>()[0] > 1);
}
