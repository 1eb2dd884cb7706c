// Learns to write like a book with an LSTM, eagerly, by truncated backpropagation through time.
//
// The text runs in parallel columns. Each step continues with the state of the step before.
// detach() drops that state's history, so memory stays at what one step takes.
#include <algorithm>
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"
#include "ebb/examples/common/text.h"

using namespace ebb;

constexpr std::int64_t kColumns = 16, kSteps = 48, kEpochs = 8, kHidden = 192;

struct Writer {
  models::Embedding embedding;
  models::Lstm lstm;
  models::Dense out;
  Writer(const Parameters& p, std::int64_t classes)
      : embedding(p.scope("embedding"), classes, 48),
        lstm(p.scope("lstm"), 48, {.hidden = kHidden}),
        out(p.scope("out"), kHidden, classes) {}
  // Codes [batch, time] to the scores of each next character, [batch, time, classes]. Advances the
  // state.
  Tensor operator()(const Tensor& codes, models::LstmState& state, Phase phase) const {
    const models::LstmOutput output = lstm(embedding(codes), phase, state);
    state = {output.hidden.detach(), output.cell.detach()};
    return out(dropout(output.sequence, 0.2, phase));
  }
};

Tensor steps(const Tensor& columns, std::int64_t begin, std::int64_t end) {
  return slice(columns, begin, end, {.axis = 1});
}

// Cross entropy in nats per character.
double evaluate(const Writer& writer, const Tensor& codes) {
  const NoGrad no_grad;
  models::LstmState state;
  double sum = 0;
  const std::int64_t count = codes.size(1) - 1;
  for (std::int64_t begin = 0, end = 0; begin < count; begin = end) {
    end = std::min(begin + 512, count);
    const Tensor scores = writer(steps(codes, begin, end), state, Phase::inference);
    const Tensor loss = softmax_cross_entropy(scores, steps(codes, begin + 1, end + 1));
    sum += static_cast<double>(end - begin) * static_cast<double>(loss.item<float>());
  }
  return sum / static_cast<double>(count);
}

Writer train(const examples::Arguments& told, const examples::Text& text) {
  const Parameters params(told.device, Seed{7});
  Writer writer(params, text.classes());
  DataLoader batches(examples::rows_of_columns(text.training, kColumns, kSteps),
                     {.batch = kColumns, .device = told.device});
  const optim::Adam adam(
      {.learning_rate = optim::cosine(6e-3, {.warm_up = 50, .steps = kEpochs * batches.size()}),
       .clip = {.global_norm = 1}});
  if (!told.resume.empty()) params.load(told.resume, batches);
  while (batches.pass() < kEpochs) {
    models::LstmState state;
    double sum = 0;
    for (const auto& [codes, next] : batches) {
      const Tensor scores = writer(codes, state, Phase::training);
      const Tensor loss = adam.minimize(softmax_cross_entropy(scores, next), params);
      if (!told.device.is_simulated()) sum += static_cast<double>(loss.item<float>());
    }
    if (!told.device.is_simulated())
      std::printf("epoch %d: %.3f bits\n", static_cast<int>(batches.pass()),
                  examples::in_bits(sum / static_cast<double>(batches.size())));
    if (!told.save.empty()) params.save(told.save, batches);
  }
  return writer;
}

void run(const examples::Arguments& told) {
  const examples::Text text = examples::read_text(EBB_EXAMPLES_DATA "/alice.txt");
  const Writer writer =
      examples::run_predicted(told, [&](const auto& here) { return train(here, text); });

  const double nats = evaluate(writer, Tensor::from(text.held_out, {1, -1}).to(told.device));
  examples::print_bits(text, "LSTM", nats);
  models::LstmState state;
  examples::write(text, 1, [&](std::span<const std::int32_t> written) {
    const Tensor last = Tensor::from(written.last(1), {1, 1}).to(told.device);
    return writer(last, state, Phase::inference)[0][0];
  });
}

int main(int argc, char** argv) {
  return examples::train_example(argc, argv, "Learns to write like a book, by an LSTM.", run);
}
