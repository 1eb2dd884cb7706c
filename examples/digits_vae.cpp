// Learns to draw digits with a variational autoencoder, eagerly.
//
// Kingma and Welling, "Auto-encoding variational Bayes", ICLR 2014. Everything that a step computes
// is freed with it: between steps only parameters and moments are alive.
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;

constexpr std::int64_t kBatch = 32, kLatent = 8, kEpochs = 150;

// Nats that each image takes if its pixels are independent bits: [batch].
Tensor nats(const Tensor& logits, const Tensor& pixels) {
  return sum(binary_cross_entropy_with_logits(logits, pixels, {.reduction = LossReduction::none}),
             1);
}

struct Autoencoder {
  models::Mlp encoder, decoder;
  explicit Autoencoder(const Parameters& p)
      : encoder(p.scope("encoder"), {64, 128, 2 * kLatent}),
        decoder(p.scope("decoder"), {kLatent, 128, 64}) {}

  // Upper bound of the nats that each image takes, -ELBO: [batch].
  Tensor bound(const Tensor& pixels) const {
    const Tensors code = chunk(encoder(pixels), 2, 1);
    const Tensor center = code[0], log_variance = code[1];
    const Tensor z = center + exp(0.5 * log_variance) * normal_like(center);
    const Tensor divergence = 0.5 * sum(square(center) + exp(log_variance) - 1 - log_variance, 1);
    return nats(decoder(z), pixels) + divergence;
  }
};

Autoencoder train(const examples::Arguments& told, const DataSet& images) {
  const Parameters params(told.device, Seed{7});
  Autoencoder model(params);
  DataLoader batches(images, {.batch = kBatch, .shuffle = Seed{1}, .device = told.device});
  const optim::AdamW adam(
      {.learning_rate = optim::cosine(3e-3, {.warm_up = 50, .steps = kEpochs * batches.size()}),
       .weight_decay = 0.1,
       .decay_only = optim::is_matrix});
  set_seed(Seed{2});
  if (!told.resume.empty()) params.load(told.resume, batches);
  while (batches.pass() < kEpochs) {
    for (const auto& batch : batches) adam.minimize(mean(model.bound(batch[0])), params);
    if (!told.save.empty()) params.save(told.save, batches);
  }
  return model;
}

void print(const Tensor& ink, std::int64_t images) {
  const std::vector<float> values = ink.to_vector<float>();
  for (std::int64_t row = 0; row < 8; ++row) {
    for (std::int64_t i = 0; i < 8 * images; ++i) {
      const std::int64_t at = i / 8 * 64 + row * 8 + i % 8;
      std::printf("%s%c", i % 8 ? "" : "  ",
                  " .:oO#"[static_cast<int>(values[static_cast<std::size_t>(at)] * 5.99f)]);
    }
    std::printf("\n");
  }
}

void run(const examples::Arguments& told) {
  // A pixel is 1 if at least half of its 16 points are inked.
  const DataSet digits = DataSet::csv(EBB_EXAMPLES_DATA "/digits.csv", {.label = "digit"});
  const DataSet bits = digits.mapped([](const Tensors& fields) -> Tensors {
    return {cast(greater_equal(fields[0], 8), DType::f32)};
  });
  const auto [training, held_out] = bits.split(0.2, Seed{1});

  const Autoencoder model = examples::run_predicted(
      told, [&images = training](const auto& here) { return train(here, images); });

  const NoGrad no_grad;
  const Tensor seen = training.inputs(), unseen = held_out.inputs().to(told.device);
  // The baseline: independent pixels, each inked as often as in the training part.
  const Tensor inked = (sum(seen, 0) + 1) / static_cast<double>(training.size() + 2);
  const Tensor logits = broadcast_to(log(inked / (1 - inked)), held_out.inputs().shape());
  const auto average = [](const Tensor& x) { return static_cast<double>(mean(x).item<float>()); };
  double bound = 0;
  for (int draw = 0; draw < 16; ++draw) bound += average(model.bound(unseen)) / 16;
  std::printf("nats per image, held out: independent pixels %.2f, autoencoder at most %.2f\n",
              average(nats(logits, held_out.inputs())), bound);
  print(sigmoid(model.decoder(normal({8, kLatent}, {.device = told.device}))), 8);
}

int main(int argc, char** argv) {
  return examples::train_example(argc, argv, "Learns to draw digits by an autoencoder.", run);
}
