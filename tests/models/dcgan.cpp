// A small DCGAN: a generator of transposed convolutions against a discriminator of convolutions
// (Radford, Metz & Chintala, ICLR 2016).
#include "ebb/core/base/error.h"
#include "ebb/core/ops/activations.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/shape.h"
#include "ebb/graph/session.h"
#include "ebb/models/conv.h"
#include "ebb/models/dense.h"
#include "ebb/models/norm.h"
#include "ebb/optim/adam.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/golden/golden.h"

namespace ebb::tests {
namespace {

constexpr std::int64_t kNoise = 6;

struct Generator {
  models::ConvTranspose2d first, second, third;
  models::BatchNorm first_norm, second_norm;

  explicit Generator(const Parameters& params)
      : first(params.scope("first"), kNoise, 8, {.kernel = 3, .bias = false}),
        second(params.scope("second"), 8, 4,
               {.kernel = 4, .stride = 2, .padding = 1, .bias = false}),
        third(params.scope("third"), 4, 1,
              {.stride = 2, .padding = 1, .output_padding = 1, .activation = Activation::tanh}),
        first_norm(params.scope("first_norm"), 8),
        second_norm(params.scope("second_norm"), 4) {}

  // Maps noise [n, kNoise] to images [n, 1, 12, 12].
  Tensor operator()(const Tensor& noise, Phase phase) const {
    const Tensor points = unsqueeze(unsqueeze(noise, 2), 3);
    return third(relu(second_norm(second(relu(first_norm(first(points), phase))), phase)));
  }
};

struct Discriminator {
  models::Conv2d first, second;
  models::Dense head;

  explicit Discriminator(const Parameters& params)
      : first(params.scope("first"), 1, 4, {.stride = 2, .padding = 1}),
        second(params.scope("second"), 4, 8, {.stride = 2, .padding = 1}),
        head(params.scope("head"), 72, 1) {}

  // Returns a logit for each image; a large one says that the image is real.
  Tensor operator()(const Tensor& images) const {
    return head(flatten(leaky_relu(second(leaky_relu(first(images), 0.2)), 0.2)));
  }
};

// The two players and their training steps.
struct Game {
  Parameters of_generator, of_discriminator;
  Generator generator;
  Discriminator discriminator;
  optim::Adam adam{{.learning_rate = 0.002, .beta1 = 0.5}};

  explicit Game(const Parameters& params)
      : of_generator(params.scope("generator")),
        of_discriminator(params.scope("discriminator")),
        generator(of_generator),
        discriminator(of_discriminator) {}

  static Tensor loss(const Tensor& logits, double label) {
    return binary_cross_entropy_with_logits(logits, full_like(logits, label));
  }
  Tensor train_discriminator(const Tensor& images, const Tensor& noise) const {
    const Tensor made = generator(noise, Phase::training).detach();
    return adam.minimize(loss(discriminator(images), 1) + loss(discriminator(made), 0),
                         of_discriminator);
  }
  Tensor train_generator(const Tensor& noise) const {
    return adam.minimize(loss(discriminator(generator(noise, Phase::training)), 1), of_generator);
  }
};

}  // namespace

TEST_CASE("an adversarial game of convolutions is played alike in both modes, bit for bit",
          "[models]") {
  constexpr int kRounds = 3;
  const std::int64_t batch = 5;
  std::vector<Tensor> images, noise;
  for (int round = 0; round < kRounds; ++round) {
    images.push_back(tanh(normal({batch, 1, 12, 12}, {.device = Device::cpu()})));
    noise.push_back(normal({batch, kNoise}, {.device = Device::cpu()}));
  }

  const Parameters params(Device::cpu(), Seed{7});
  const Game eager(params);
  Tensors losses;
  for (std::size_t round = 0; round < kRounds; ++round) {
    losses.push_back(eager.train_discriminator(images[round], noise[round]));
    losses.push_back(eager.train_generator(noise[round]));
  }

  Graph graph;
  const Tensor some_images = graph.placeholder("images", DType::f32, {kOpen, 1, 12, 12}),
               some_noise = graph.placeholder("noise", DType::f32, {kOpen, kNoise});
  const Parameters symbolic(graph, Seed{7});
  const Game recorded(symbolic);
  const Tensor of_discriminator = recorded.train_discriminator(some_images, some_noise),
               of_generator = recorded.train_generator(some_noise),
               made = recorded.generator(some_noise, Phase::inference);
  Session session(graph, {.passes = false});
  session.initialize(symbolic);
  for (std::size_t round = 0; round < kRounds; ++round) {
    CAPTURE(round);
    const Feeds feeds{{some_images, images[round]}, {some_noise, noise[round]}};
    CHECK(bit_equal(session.run(of_discriminator, feeds), losses[2 * round]));
    CHECK(
        bit_equal(session.run(of_generator, {{some_noise, noise[round]}}), losses[2 * round + 1]));
  }
  const Tensor drawn = eager.generator(noise[0], Phase::inference);
  CHECK(drawn.shape() == Shape{batch, 1, 12, 12});
  CHECK(bit_equal(session.run(made, {{some_noise, noise[0]}}), drawn));
  std::size_t moved = 0;
  const Parameters fresh(Device::cpu(), Seed{7});
  const Game untrained(fresh);
  for (const auto& [name, tensor] : symbolic.entries()) {
    CAPTURE(name);
    CHECK(bit_equal(session.value(tensor), params[name]));
    moved += bit_equal(params[name], fresh[name]) ? 0 : 1;
  }
  CHECK(moved == params.entries().size());
}

}  // namespace ebb::tests
