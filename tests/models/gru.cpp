// Behaviour that GRUs alone have; the rest is in recurrent.cpp.

#include <algorithm>

#include "ebb/ebb.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/line.h"

namespace ebb::tests {

TEST_CASE("a GRU starts within 1 / sqrt(hidden), its biases too", "[models]") {
  const Parameters parameters(Device::cpu(), Seed{4});
  models::Gru(parameters, 3, {.hidden = 100, .bidirectional = true});
  CHECK(parameters.entries().size() == 6);
  for (const auto& [name, tensor] : parameters.entries()) {
    CAPTURE(name);
    const std::vector<double> values = values_of(tensor);
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    CHECK((*low >= -0.1 && *low < -0.09 && *high <= 0.1 && *high > 0.09));
  }
}

TEST_CASE("what a GRU refuses is of the caller's line, one way and both", "[models]") {
  const bool both = GENERATE(false, true);
  const Parameters parameters(Device::cpu());
  const models::Gru gru(parameters, 3, {.hidden = 5, .bidirectional = both});
  const Tensor hidden = Tensor::zeros({1});
  CHECK_ERROR_HERE(gru(Tensor::zeros({2, 3}), Phase::inference, hidden), ShapeError,
                   "[gru] takes x [batch, time, in]");
  CHECK_ERROR_HERE(gru(Tensor::zeros({2, 4, 3}), Phase::inference, hidden), ShapeError, "[gru]");
}

TEST_CASE("a GRU of one layer has nothing to drop, and draws nothing", "[models]") {
  const bool both = GENERATE(false, true);
  const Parameters parameters(Device::cpu(), Seed{3});
  const models::Gru gru(parameters, 3, {.hidden = 8, .dropout = 0.5, .bidirectional = both});
  const Tensor x = normal({2, 4, 3});
  set_seed(Seed{7});
  const Tensor next = normal({3});
  set_seed(Seed{7});
  CHECK(bit_equal(gru(x, Phase::training).sequence, gru(x).sequence));
  CHECK(bit_equal(normal({3}), next));
}

TEST_CASE("a GRU's gradients that nobody asks for take no memory", "[models]") {
  const auto leaf = [](const Shape& shape) { return normal(shape).with_grad(); };
  const GruWeights weights = {leaf({64, 192}), leaf({64, 192}), leaf({256})};
  const Tensor x = leaf({4, 6, 64});
  const auto peak = [&](const Tensors& inputs) {
    const Tensor loss = sum(gru(x, {&weights, 1}).sequence);
    const Bytes pass;
    gradients(loss, inputs);
    return pass.peak();
  };
  const std::size_t bytes = weights.input.bytes() + weights.recurrent.bytes();
  CHECK(peak({x, weights.input, weights.recurrent}) >= peak({x}) + bytes);
  // The gradient by a temporary is written over the temporary.
  const auto peak_of = [&](bool is_temporary) {
    const Tensor given = leaf({4, 6, 64});
    const Tensor loss = sum(gru(is_temporary ? given * 2 : given, {&weights, 1}).sequence);
    const Bytes pass;
    gradients(loss, {given});
    return pass.peak();
  };
  CHECK(peak_of(true) + x.bytes() == peak_of(false));
}

}  // namespace ebb::tests
