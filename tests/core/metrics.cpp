#include "ebb/core/data/metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/parameters/early_stopping.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/line.h"

namespace ebb::tests {

TEST_CASE("a score that is NaN is never right, and does not hide those that are") {
  const Tensor scores = Tensor::from({{kNaN, 1.f}, {1.f, kNaN}, {kNaN, kNaN}});
  CHECK(metrics::accuracy(scores, Tensor::from({1, 1, 0})) == Approx(1. / 3));
  CHECK(metrics::top_k_accuracy(scores, Tensor::from({0, 0, 1}), 2) == Approx(1. / 3));
  CHECK(metrics::confusion_matrix(scores, Tensor::from({1, 1, 1})).to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{0, 0, 2, 1});
}

TEST_CASE("accuracy is the trace of the confusion matrix, and top-k what sorting gives") {
  std::mt19937 random(8);
  for (int round = 0; round < 20; ++round) {
    const std::int64_t rows = 1 + random() % 40, classes = 1 + random() % 6;
    std::vector<float> scores(static_cast<std::size_t>(rows * classes));
    for (float& score : scores) score = static_cast<float>(random() % 7);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(rows));
    for (std::int32_t& label : labels)
      label = static_cast<std::int32_t>(random() % static_cast<unsigned>(classes));
    const Tensor x = Tensor::from(scores, {rows, classes}), y = Tensor::from(labels);
    const auto matrix = metrics::confusion_matrix(x, y).to_vector<std::int64_t>();
    std::int64_t trace = 0, all = 0;
    for (std::size_t i = 0; i < matrix.size(); ++i) {
      all += matrix[i];
      if (i % static_cast<std::size_t>(classes + 1) == 0) trace += matrix[i];
    }
    CHECK(all == rows);
    const double accuracy = static_cast<double>(trace) / static_cast<double>(rows);
    CHECK(metrics::accuracy(x, y) == accuracy);
    CHECK(metrics::accuracy(x.to(Device::best()), cast(y, DType::i64)) == accuracy);
    CHECK(metrics::top_k_accuracy(x, y, classes + 1) == 1);
    for (std::int64_t k = 1; k <= classes; ++k) {
      std::int64_t right = 0;
      for (std::int64_t i = 0; i < rows; ++i) {
        std::vector<std::int64_t> order(static_cast<std::size_t>(classes));
        for (std::size_t j = 0; j < order.size(); ++j) order[j] = static_cast<std::int64_t>(j);
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
          return x.item<float>({i, a}) > x.item<float>({i, b});
        });
        for (std::int64_t j = 0; j < k; ++j)
          right += order[static_cast<std::size_t>(j)] == labels[static_cast<std::size_t>(i)];
      }
      CHECK(metrics::top_k_accuracy(x, y, k) ==
            static_cast<double>(right) / static_cast<double>(rows));
    }
  }
}

TEST_CASE("precision, recall and f1 are counted over the rows, as scikit-learn counts them") {
  std::mt19937 random(9);
  for (int round = 0; round < 40; ++round) {
    const std::size_t rows = 1 + random() % 12, classes = 1 + random() % 6;
    std::vector<float> scores(rows * classes);
    for (float& score : scores) score = static_cast<float>(random() % 50);
    std::vector<std::int32_t> labels(rows), taken(rows);
    for (std::size_t i = 0; i < rows; ++i) {
      labels[i] = static_cast<std::int32_t>(random() % static_cast<unsigned>(classes));
      const auto row = scores.begin() + static_cast<std::ptrdiff_t>(i * classes);
      taken[i] = static_cast<std::int32_t>(
          std::max_element(row, row + static_cast<std::ptrdiff_t>(classes)) - row);
    }
    const Tensor x = Tensor::from(
                     scores, {static_cast<std::int64_t>(rows), static_cast<std::int64_t>(classes)}),
                 y = Tensor::from(labels);
    double precision = 0, recall = 0, f1 = 0, occur = 0;
    for (std::int32_t c = 0; c < static_cast<std::int32_t>(classes); ++c) {
      double both = 0, only_taken = 0, only_label = 0;
      for (std::size_t i = 0; i < rows; ++i) {
        both += taken[i] == c && labels[i] == c;
        only_taken += taken[i] == c && labels[i] != c;
        only_label += taken[i] != c && labels[i] == c;
      }
      const auto ratio = [](double a, double b) { return b > 0 ? a / b : 0; };
      const double p = ratio(both, both + only_taken), r = ratio(both, both + only_label),
                   f = ratio(2 * p * r, p + r);
      CHECK(metrics::precision(x, y, {.positive = c}) == Approx(p));
      CHECK(metrics::recall(x, y, {.positive = c}) == Approx(r));
      CHECK(metrics::f1(x, y, {.positive = c}) == Approx(f));
      if (both + only_taken + only_label == 0) continue;
      precision += p;
      recall += r;
      f1 += f;
      ++occur;
    }
    CHECK(metrics::precision(x, y) == Approx(precision / occur));
    CHECK(metrics::recall(x, y) == Approx(recall / occur));
    CHECK(metrics::f1(x, y) == Approx(f1 / occur));
  }
}

TEST_CASE("the area under the curve is the part of pairs in the right order, ties counting half") {
  std::mt19937 random(10);
  for (int round = 0; round < 40; ++round) {
    const std::size_t rows = 2 + random() % 30;
    std::vector<float> scores(rows);
    std::vector<std::int64_t> labels(rows);
    for (float& score : scores) score = static_cast<float>(random() % 9) - 4;
    for (std::int64_t& label : labels) label = random() % 2;
    labels[0] = 0;
    labels[1] = 1;
    double right = 0, pairs = 0;
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < rows; ++j)
        if (labels[i] == 1 && labels[j] == 0) {
          right += scores[i] > scores[j] ? 1 : scores[i] == scores[j] ? 0.5 : 0;
          ++pairs;
        }
    const Tensor x = Tensor::from(scores), y = Tensor::from(labels);
    CHECK(metrics::roc_auc(x, y) == Approx(right / pairs));
    CHECK(metrics::roc_auc(cast(x, DType::bf16), cast(y, DType::f32)) == Approx(right / pairs));
    CHECK(metrics::roc_auc(-x, y == 1) == Approx(1 - right / pairs));
    CHECK(metrics::roc_auc(x, cast(y, round % 2 == 0 ? DType::u8 : DType::i32)) ==
          Approx(right / pairs));
  }
}

TEST_CASE("errors of forecasts are those of their definitions, in every floating dtype") {
  const Tensor targets = Tensor::from({{1.f, 2.f}, {3.f, 6.f}});
  const Tensor forecasts = Tensor::from({{1.f, 4.f}, {2.f, 6.f}});
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    const Tensor a = cast(forecasts, dtype);
    CHECK(metrics::mae(a, targets) == 0.75);
    CHECK(metrics::rmse(a, targets) == std::sqrt(1.25));
    CHECK(metrics::r2(a, targets) == Approx(1 - 5. / 14));
  }
  CHECK(metrics::r2(targets, targets) == 1);
  CHECK(metrics::r2(Tensor::full({2, 2}, 3), targets) == Approx(0).margin(1e-15));
  const Tensor same = Tensor::full({3}, 0.1);
  CHECK(metrics::r2(same, same) == 1);
  CHECK(metrics::r2(Tensor::zeros({3}), same) == -std::numeric_limits<double>::infinity());
  CHECK(std::isnan(metrics::mae(Tensor::from({kNaN}), Tensor::from({1.f}))));
}

TEST_CASE("metrics refuse what they are not of, by the caller's line") {
  const Tensor scores = Tensor::zeros({2, 3}), labels = Tensor::from({0, 1});
  CHECK_ERROR_HERE(metrics::accuracy(scores, Tensor::from({0, 3})), Error,
                   "[accuracy] label 3 is none of 3 classes");
  CHECK_ERROR(metrics::accuracy(scores, Tensor::from({0, -1})), Error, "label -1");
  CHECK_ERROR(metrics::accuracy(scores, Tensor::from({0})), ShapeError,
              "takes scores [n, classes] and labels [n]");
  CHECK_ERROR(metrics::accuracy(Tensor::zeros({0, 3}), Tensor::zeros({0}, DType::i32)), ShapeError,
              "n at least 1");
  CHECK_ERROR(metrics::accuracy(labels, labels), Error, "the scores of a floating dtype");
  CHECK_ERROR(metrics::confusion_matrix(scores, Tensor::zeros({2})), Error,
              "labels of i32 or i64, not f32[2]");
  CHECK_ERROR(metrics::top_k_accuracy(scores, labels, 0), Error, "k of at least 1, not 0");
  CHECK_ERROR(metrics::precision(scores, labels, {.positive = 3}), Error,
              "[precision] class 3 is none of 3");
  CHECK_ERROR_HERE(metrics::precision(scores, labels, {.positive = -1}), Error, "[precision]");
  CHECK_ERROR_HERE(metrics::recall(scores, labels, {.positive = -1}), Error, "[recall]");
  CHECK_ERROR_HERE(metrics::f1(scores, labels, {.positive = -1}), Error,
                   "[f1] class -1 is none of 3");
  CHECK_ERROR(metrics::recall(scores, Tensor::from({0})), ShapeError, "[recall]");
  const Tensor two = Tensor::from({1.f, 2.f});
  CHECK_ERROR_HERE(metrics::roc_auc(two, Tensor::from({1, 1})), Error,
                   "[roc_auc] takes labels of both classes, not of class 1 alone");
  CHECK_ERROR(metrics::roc_auc(two, Tensor::from({0, 2})), Error, "label 1 is neither 0 nor 1");
  CHECK_ERROR(metrics::roc_auc(Tensor::from({1.f, kNaN}), labels), Error, "score 1 is NaN");
  CHECK_ERROR(metrics::roc_auc(two, Tensor::from({0, 0})), Error, "not of class 0 alone");
  const std::string of_one_axis = "takes scores [n] and labels [n]";
  CHECK_ERROR(metrics::roc_auc(scores, labels), ShapeError, of_one_axis);
  CHECK_ERROR(metrics::roc_auc(two, Tensor::from({{0}, {1}})), ShapeError, of_one_axis);
  CHECK_ERROR(metrics::roc_auc(two, Tensor::from({0, 1, 0})), ShapeError, of_one_axis);
  CHECK_ERROR(metrics::roc_auc(two, Tensor()), Error, "[roc_auc] the labels has no values");
  CHECK_ERROR(metrics::roc_auc(Tensor::zeros({0}), Tensor::zeros({0})), Error, "both classes");
  CHECK_ERROR(metrics::mae(scores, Tensor::zeros({3, 2})), ShapeError,
              "of one shape, with elements, not f32[2, 3]");
  CHECK_ERROR(metrics::rmse(Tensor::zeros({0}), Tensor::zeros({0})), ShapeError, "with elements");
  CHECK_ERROR(metrics::r2(Tensor(), scores), Error, "forecasts has no values");
  const Device twin = Device::simulated("cpu", std::size_t{1} << 30);
  CHECK_ERROR(metrics::mae(Tensor::zeros({2}, DType::f32, twin), Tensor::zeros({2})), SimulatedRead,
              "[mae]");
}

TEST_CASE("training stops once the metric has not become better for so many updates") {
  EarlyStopping loss({.patience = 2, .least_change = 0.1});
  CHECK_FALSE(loss.update(kNaN));
  CHECK(loss.best() == std::numeric_limits<double>::infinity());
  CHECK(loss.update(1));
  CHECK_FALSE(loss.update(0.95));  // not by more than 0.1
  CHECK_FALSE(loss.should_stop());
  CHECK(loss.update(0.5));
  CHECK_FALSE(loss.update(0.6));
  const EarlyStopping::Update last = loss.update(kNaN);
  CHECK((!last.best && last.stop && !last));
  CHECK(loss.should_stop());
  CHECK(loss.best() == 0.5);
  EarlyStopping accuracy({.patience = 1, .higher_is_better = true});
  CHECK(accuracy.best() == -std::numeric_limits<double>::infinity());
  CHECK(accuracy.update(0.5));
  const EarlyStopping::Update better = accuracy.update(0.75);
  CHECK((better.best && !better.stop && better));
  CHECK_FALSE(accuracy.update(0.75));
  CHECK(accuracy.should_stop());
  EarlyStopping infinite;
  CHECK(infinite.update(std::numeric_limits<double>::infinity()));
  CHECK_FALSE(infinite.update(std::numeric_limits<double>::infinity()));
  CHECK(infinite.update(1));
  CHECK_ERROR_HERE(EarlyStopping({.patience = 0}), Error, "patience must be at least 1, not 0");
  CHECK_ERROR(EarlyStopping({.least_change = -1}), Error, "least_change must be at least 0");
  CHECK_ERROR(EarlyStopping({.least_change = std::nan("")}), Error,
              "least_change must be at least 0");
}

TEST_CASE("the best weights are kept, states among them, and come back bit for bit") {
  Parameters params(Device::best(), Seed{1});
  const Tensor weight = params.declare("w", {3}, initializers::normal(0, 1));
  const Tensor mean = params.state("mean", {1}, initializers::zeros(), DType::i64);
  EarlyStopping stopping;
  CHECK_ERROR(stopping.restore(params), Error, "no update has kept any values " + line(__LINE__));
  const std::vector<float> best = weight.to_vector<float>();
  CHECK(stopping.update(1, params));
  weight.impl()->storage->fill(0);
  mean.impl()->storage->fill(1);
  CHECK_FALSE(stopping.update(2, params));
  stopping.restore(params);
  CHECK(weight.to_vector<float>() == best);
  CHECK(mean.item<std::int64_t>() == 0);
  weight.impl()->storage->fill(0);
  CHECK(stopping.update(0.5, params));
  stopping.restore(params);
  CHECK(weight.to_vector<float>() == std::vector<float>(3, 0));

  // restore() bumps the version, so that a backward pass which read the old values is refused, and
  // makes torn values whole.
  const Tensor y = square(weight.with_grad());
  stopping.restore(params);
  CHECK_THROWS_AS(sum(y).backward(), Error);
  weight.impl()->storage->tear("a test");
  CHECK_ERROR(stopping.update(0.25, params), Error, "a test");
  CHECK(stopping.best() == 0.5);
  stopping.restore(params);
  CHECK(weight.to_vector<float>() == std::vector<float>(3, 0));
  const Parameters simulated(Device::simulated("cpu", std::size_t{1} << 30));
  simulated.declare("w", {3}, initializers::zeros());
  EarlyStopping on_twin;
  CHECK(on_twin.update(1, simulated));
  on_twin.restore(simulated);

  Parameters others(Device::cpu());
  CHECK_ERROR(stopping.update(0, others), Error, "there are no parameters");
  others.declare("v", {3}, initializers::zeros());
  CHECK_ERROR(stopping.update(0, others), Error,
              "other parameters were kept: there was no \"v\" of f32[3]");
  Parameters wider(Device::cpu());
  wider.declare("w", {4}, initializers::zeros());
  CHECK_ERROR(stopping.restore(wider), Error, "there was no \"w\" of f32[4]");
  CHECK_ERROR(stopping.restore(params.scope("x")), Error, "there is no \"w\" any more");
  CHECK(stopping.best() == 0.5);
  Graph graph;
  CHECK_ERROR(stopping.update(0, Parameters(graph)), Error, "session.save(file)");
}

}  // namespace ebb::tests
