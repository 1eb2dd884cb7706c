// A classifier of sequences, against the parts that it is made of.
#include <cmath>

#include "ebb/ebb.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/in_mode.h"
#include "ebb/tests/line.h"

namespace ebb::tests {

using models::Pooling;

TEST_CASE("a sequence's scores are those of it alone, however it is pooled, in both modes",
          "[models][sequence]") {
  const Tensor lengths = Tensor::from({3, 1, 5, 0});
  for (const bool both : {false, true})
    for (const Pooling pooling : {Pooling::last, Pooling::mean, Pooling::max}) {
      CAPTURE(both, static_cast<int>(pooling));
      set_seed(Seed{3});
      const Tensor x = normal({4, 5, 2}, {.dtype = DType::f64});
      const models::SequenceClassifierOptions options{
          .lstm = {.hidden = 3, .layers = 2, .bidirectional = both}, .pooling = pooling};
      const auto in_a_graph = [&] {
        InMode mode(true, DType::f64);
        const models::SequenceClassifier same(mode.parameters, 2, 4, options);
        return mode.function({{DType::f64, {-1, -1, 2}}, {DType::i32, {-1}}},
                             [&](const Tensors& in) -> Tensors {
                               return {same(in[0], {.lengths = in[1]})};
                             })({x, lengths})[0];
      };
      const Parameters params(Device::cpu(), Seed{1}, DType::f64);
      const models::SequenceClassifier model(params, 2, 4, options);
      const Tensor scores = model(x, {.lengths = lengths});
      REQUIRE(scores.shape() == Shape{4, 4});
      const models::Lstm lstm(Parameters(Device::cpu(), Seed{1}, DType::f64).scope("lstm"), 2,
                              options.lstm);  // same values, by name
      for (std::int64_t i = 0; i < 4; ++i) {
        const std::int64_t length = lengths.item<std::int32_t>({i});
        Tensor pooled =
            Tensor::full({1, both ? 6 : 3}, pooling == Pooling::max ? -1 : 0, DType::f64);
        if (length > 0) {
          const models::LstmOutput alone = lstm(slice(slice(x, i, i + 1), 0, length, {.axis = 1}));
          pooled = pooling == Pooling::mean  ? mean(alone.sequence, 1)
                   : pooling == Pooling::max ? max(alone.sequence, 1)
                   : both                    ? concat({alone.hidden[-2], alone.hidden[-1]}, 1)
                                             : alone.hidden[-1];
        }
        const Parameters head = params.scope("head");
        CHECK(distance(scores[i], dense(pooled, head["weight"], head["bias"])[0]) < 1e-12);
      }
      // Without lengths all steps count.
      CHECK(distance(model(x), model(x, {.lengths = Tensor::from({5, 5, 5, 5})})) < 1e-14);
      CHECK(bit_equal(in_a_graph(), scores));
    }
}

TEST_CASE("a classifier of codes learns which symbol a sequence has, and what it is made of",
          "[models][sequence]") {
  // The label is whether code 1 occurs, in sequences of one to eight codes.
  set_seed(Seed{2});
  const std::int64_t count = 64;
  const Tensor codes = randint(0, 6, {count, 8}, {.dtype = DType::i32}),
               lengths = randint(1, 9, {count}, {.dtype = DType::i32});
  std::vector<std::int32_t> labels;
  for (std::int64_t i = 0; i < count; ++i) {
    labels.push_back(0);
    for (std::int64_t t = 0; t < lengths.item<std::int32_t>({i}); ++t)
      if (codes.item<std::int32_t>({i, t}) == 1) labels.back() = 1;
  }
  const Parameters params(Device::cpu(), Seed{1});
  const models::SequenceClassifier model(
      params, 4, 2,
      {.vocabulary = 6, .lstm = {.hidden = 8, .bidirectional = true}, .pooling = Pooling::max});
  CHECK(params.entries()[0].name == "embedding.weight");
  CHECK(params.entries()[0].tensor.shape() == Shape{6, 4});
  CHECK(params["lstm.0.input"].shape() == Shape{4, 32});
  CHECK(params["head.weight"].shape() == Shape{16, 2});
  const Tensor target = Tensor::from(labels);
  float loss = 0;
  for (int i = 0; i < 150; ++i)
    loss = optim::Adam({.learning_rate = 0.02})
               .minimize(softmax_cross_entropy(
                             model(codes, {.phase = Phase::training, .lengths = lengths}), target),
                         params)
               .item<float>();
  CHECK(loss < 0.05f);
}

TEST_CASE("a length that cannot be makes its scores NaN and no other's, however it is pooled",
          "[models][sequence]") {
  const Tensor x = normal({3, 5, 2});
  const bool both = GENERATE(false, true);
  for (const Pooling pooling : {Pooling::last, Pooling::mean, Pooling::max}) {
    CAPTURE(both, static_cast<int>(pooling));
    const Parameters params(Device::cpu(), Seed{1});
    const models::SequenceClassifier model(
        params, 2, 1, {.lstm = {.hidden = 3, .bidirectional = both}, .pooling = pooling});
    const std::vector<double> scores = values_of(model(x, {.lengths = Tensor::from({-1, 2, 6})}));
    CHECK(std::isnan(scores[0]));
    CHECK(std::isfinite(scores[1]));
    CHECK(std::isnan(scores[2]));
  }
}

TEST_CASE("the mean of more steps than f16 can count is that of f32", "[models][sequence]") {
  if (on_cuda()) return;  // an emulated GPU takes a minute for so many steps
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  const models::SequenceClassifierOptions options{.lstm = {.hidden = 1}, .pooling = Pooling::mean};
  const Parameters half(Device::cpu(), Seed{1}, dtype);
  const models::SequenceClassifier model(half, 1, 1, options);
  const Tensor x = full({1, 70'000, 1}, 5.0, {.dtype = dtype});
  const auto score = [&](const Tensor& lengths) {
    return values_of(cast(model(x, {.lengths = lengths}), DType::f32))[0];
  };
  const double all = score({});
  CHECK(std::abs(all) > 0.01);
  CHECK(std::abs(score(Tensor::from({70'000})) - all) <= 0.02 * std::abs(all));
}

TEST_CASE("a sequence classifier drops out in training, between layers and before its head",
          "[models][sequence]") {
  const bool between = GENERATE(false, true);
  const Parameters params(Device::cpu(), Seed{1});
  const models::SequenceClassifier model(
      params, 2, 3,
      {.lstm = {.hidden = 16, .layers = 2, .dropout = between ? 0.5 : 0.0},
       .dropout = between ? 0.0 : 0.5});
  const Tensor x = normal({4, 5, 2});
  const auto scores = [&](Phase phase) { return model(x, {.phase = phase}); };
  CHECK(bit_equal(scores(Phase::inference), scores(Phase::inference)));
  CHECK(!bit_equal(scores(Phase::training), scores(Phase::inference)));
  CHECK(!bit_equal(scores(Phase::training), scores(Phase::training)));
}

TEST_CASE("sequence classifiers that cannot be are refused, and leave nothing",
          "[models][sequence]") {
  const Parameters params(Device::cpu());
  CHECK_ERROR(models::SequenceClassifier(params, 2, 3, {.dropout = 1}), Error,
              "[sequence_classifier] dropout = 1.000000 is outside [0, 1)");
  CHECK_ERROR(models::SequenceClassifier(params, 2, 3, {.vocabulary = -1}), Error,
              "[sequence_classifier] vocabulary = -1 is below 0");
  CHECK_ERROR(models::SequenceClassifier(params, 2, 0), Error, "[dense] out = 0");
  CHECK(params.entries().empty());
  const models::SequenceClassifier model(params, 2, 3);
  CHECK_ERROR(model(Tensor::zeros({4, 5, 3})), ShapeError, "[lstm]");
  const Tensor x = Tensor::zeros({4, 5, 2}), lengths = Tensor::from({1});
  CHECK_ERROR_HERE(model(x, {.lengths = lengths}), ShapeError, "");
  CHECK(model(Tensor::zeros({0, 5, 2})).shape() == Shape{0, 3});
  const models::SequenceClassifier largest(params.scope("max"), 2, 3, {.pooling = Pooling::max});
  CHECK_ERROR(largest(Tensor::zeros({4, 0, 2})), ShapeError, "[max]");
}

}  // namespace ebb::tests
