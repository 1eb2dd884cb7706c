// categorical(): drawing classes by their logits.
#include <cmath>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/softmax.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/ops/refuses.h"

namespace ebb::tests {
namespace {

using Classes = std::vector<std::int64_t>;

// Number of draws of each class.
std::vector<double> counts_of(const Tensor& drawn, std::size_t classes) {
  std::vector<double> counts(classes);
  for (const std::int64_t c : drawn.to_vector<std::int64_t>())
    ++counts[static_cast<std::size_t>(c)];
  return counts;
}

// Pearson's test of 4 classes: chi squared stays below 21.1 in all but 1 of 10,000 samples.
void check_frequencies(const Tensor& drawn, const std::vector<double>& p) {
  const std::vector<double> counts = counts_of(drawn, p.size());
  const auto n = static_cast<double>(drawn.elements());
  double chi_squared = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const double expected = n * p[i];
    chi_squared += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  INFO("chi squared " << chi_squared);
  CHECK(chi_squared < 21.1);
}

const std::vector<double> kParts = {0.1, 0.2, 0.3, 0.4};
constexpr std::int64_t kRows = 20'000;

Tensor rows_of_logits(DType dtype) {
  return broadcast_to(cast(log(Tensor::from(kParts)), dtype), {kRows, 4});
}

}  // namespace

TEST_CASE("Classes are drawn as often as softmax says, in every floating dtype") {
  set_seed(Seed{5});
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor drawn = categorical(rows_of_logits(dtype));
    CHECK(drawn.dtype() == DType::i64);
    CHECK(drawn.shape() == Shape{kRows});
    check_frequencies(drawn, kParts);
  }
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensor logits = rows_of_logits(dtype);
    const Tensor one = cast(slice(softmax(cast(logits, DType::f64)), 0, 1), DType::f64);
    check_frequencies(categorical(logits), one.to_vector<double>());
  }
}

TEST_CASE("Of classes more than 16 bits tell numbers apart the later ones are drawn as often") {
  set_seed(Seed{10});
  for (const DType dtype : {DType::f16, DType::bf16}) {
    double sum = 0;
    for (const std::int64_t c :
         categorical(Tensor::zeros({64, 8192}, dtype)).to_vector<std::int64_t>())
      sum += static_cast<double>(c);
    CHECK(std::abs(sum / 64 - 8191 / 2.0) < 5 * 8192 / std::sqrt(12. * 64));
  }
}

TEST_CASE("A temperature divides the logits, and 0 takes the likeliest class without a draw") {
  set_seed(Seed{6});
  std::vector<double> powers;
  double total = 0;
  for (const double p : kParts) total += p * p;
  for (const double p : kParts) powers.push_back(p * p / total);
  check_frequencies(categorical(rows_of_logits(DType::f32), 0.5), powers);
  const Tensor x = Tensor::from({{1.f, 3.f, 3.f}, {5.f, 4.f, 0.f}});
  set_seed(Seed{7});
  const auto next = uniform({3}).to_vector<float>();
  set_seed(Seed{7});
  CHECK(categorical(x, 0).to_vector<std::int64_t>() == Classes{1, 0});
  CHECK(uniform({3}).to_vector<float>() == next);
}

TEST_CASE("A class of -infinity is never drawn, and one that is alone always") {
  set_seed(Seed{9});
  const Tensor x = broadcast_to(Tensor::from({-kInfinity, 0.f, -kInfinity, 0.f}), {1000, 4});
  const std::vector<double> counts = counts_of(categorical(x), 4);
  CHECK(counts[0] + counts[2] == 0);
  CHECK(counts[1] > 400);
  CHECK(counts[3] > 400);
  CHECK(categorical(Tensor::from({-kInfinity, -kInfinity, -1e30f})).item<std::int64_t>() == 2);
  CHECK(categorical(Tensor::from({7.f})).item<std::int64_t>() == 0);
  CHECK(categorical(Tensor::zeros({0, 4})).shape() == Shape{0});
  CHECK(categorical(Tensor::zeros({2, 0, 4})).shape() == Shape{2, 0});
}

TEST_CASE("A class of -infinity is not drawn where the other's random number is 0") {
  const Shape shape{1 << 15, 2};
  set_seed(Seed{1841});
  const auto numbers = uniform(shape).to_vector<float>();
  REQUIRE(numbers[57935] == 0);
  set_seed(Seed{1841});
  CHECK(counts_of(categorical(broadcast_to(Tensor::from({-kInfinity, 0.f}), shape)), 2)[0] == 0);
}

TEST_CASE("categorical refuses what is no temperature and no logits, by the caller's line") {
  const Tensor x = Tensor::zeros({2, 3});
  for (const double wrong : {-1.0, kInfinity64, kNaN64})
    EBB_REFUSES(categorical(x, wrong), Error, "[categorical]");
  EBB_REFUSES(categorical(Tensor::zeros({2, 0})), ShapeError, "[categorical]");
  EBB_REFUSES(categorical(Tensor::zeros({2}, DType::i32)), ShapeError, "[categorical]");
  EBB_REFUSES(categorical(Tensor::zeros({})), ShapeError, "[categorical]");
  EBB_REFUSES(categorical(Tensor::zeros({2}, DType::i32), 0), ShapeError, "[categorical]");
}

}  // namespace ebb::tests
