// A small DCGAN: a generator of transposed convolutions against a discriminator of convolutions
// (Radford, Metz & Chintala, ICLR 2016).
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/in_mode.h"

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

  const auto play = [&](bool as_graph) {
    InMode mode(as_graph, DType::f32, Seed{7}, {.passes = false});
    const Game game(mode.parameters);
    const Spec of_images{DType::f32, {kOpen, 1, 12, 12}}, of_noise{DType::f32, {kOpen, kNoise}};
    const auto of_discriminator = mode.function(
        {of_images, of_noise},
        [&](const Tensors& in) -> Tensors { return {game.train_discriminator(in[0], in[1])}; });
    const auto of_generator = mode.function(
        {of_noise}, [&](const Tensors& in) -> Tensors { return {game.train_generator(in[0])}; });
    const auto made = mode.function({of_noise}, [&](const Tensors& in) -> Tensors {
      return {game.generator(in[0], Phase::inference)};
    });
    const auto before = mode.values();
    Tensors results;
    for (std::size_t round = 0; round < kRounds; ++round) {
      results.push_back(of_discriminator({images[round], noise[round]})[0]);
      results.push_back(of_generator({noise[round]})[0]);
    }
    results.push_back(made({noise[0]})[0]);
    CHECK(results.back().shape() == Shape{batch, 1, 12, 12});
    for (const auto& [name, tensor] : mode.parameters.entries()) {
      CAPTURE(name);
      results.push_back(mode[name].clone());
      CHECK_FALSE(bit_equal(results.back(), before.at(name)));
    }
    return results;
  };
  const Tensors eager = play(false), recorded = play(true);
  REQUIRE(eager.size() == recorded.size());
  for (std::size_t i = 0; i < eager.size(); ++i) {
    CAPTURE(i);
    CHECK(bit_equal(eager[i], recorded[i]));
  }
}

}  // namespace ebb::tests
