// Watches of a device's memory that free an operator's own arguments while it runs.
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/eager/bytes.h"

using namespace ebb;
using ebb::tests::Bytes;

namespace {

constexpr std::int64_t kRows = 32, kColumns = 16;

// Tensors that a program keeps for later but can do without. Dropping the handles frees them.
using Cache = std::vector<Tensor>;
using Values = std::vector<float>;

Cache filled() {
  Cache cache;
  cache.push_back(uniform({kRows, kColumns}));
  cache.push_back(uniform({kRows, kColumns}));
  cache.push_back(uniform({kColumns, kColumns}));
  cache.push_back(Tensor::zeros({kRows}, DType::i32));
  return cache;
}

// Runs the program on its cache, first without a watch, then with one for every level of allocated
// bytes up to the peak. The watch frees the cache and overwrites its memory; the result must not
// change.
void check_at_every_level(const std::function<Cache()>& make,
                          const std::function<Values(Cache&)>& program) {
  const Device cpu = Device::cpu();
  const auto begin = [&] {
    set_seed(Seed{7});
    return make();
  };
  Values wanted;
  std::size_t peak = 0;
  {
    Cache cache = begin();
    const Bytes bytes;
    wanted = program(cache);
    peak = bytes.peak();
  }
  REQUIRE(peak > 0);
  int calls = 0;
  for (std::size_t level = 0; level < peak; level += 512) {
    Cache cache = begin();
    std::vector<Tensor> overwritten;
    const memory::Watch watch = memory::on_threshold(
        cpu, memory::stats(cpu).allocated.current + level, [&](const memory::Pressure&) {
          ++calls;
          Cache().swap(cache);
          for (int i = 0; i < 8; ++i) overwritten.push_back(Tensor::full({kRows, kColumns}, 1e9));
          overwritten.clear();
        });
    INFO("level " << level << " of " << peak);
    CHECK(program(cache) == wanted);
  }
  CHECK(calls > 0);
}

void check_operator(const std::string& name, const std::function<Tensor(const Cache&)>& apply) {
  INFO(name);
  check_at_every_level(
      filled, [&](Cache& cache) { return cast(sum(apply(cache)), DType::f32).to_vector<float>(); });
}

}  // namespace

TEST_CASE("an operator computes what it would, whoever frees its arguments meanwhile") {
  check_operator("clone", [](const Cache& c) { return c[0].clone(); });
  check_operator("cast", [](const Cache& c) { return cast(c[0], DType::f64); });
  check_operator("subtract", [](const Cache& c) { return c[0] - c[1]; });
  check_operator("a number", [](const Cache& c) { return 2 * c[0]; });
  check_operator("matmul", [](const Cache& c) { return matmul(c[0], c[2]); });
  check_operator("dense", [](const Cache& c) { return dense(c[0], c[2], Activation::relu); });
  check_operator("mse", [](const Cache& c) { return mse(c[0], c[1]); });
  check_operator("softmax_cross_entropy",
                 [](const Cache& c) { return softmax_cross_entropy(c[0], c[3]); });
  check_operator("sum", [](const Cache& c) { return sum(c[0], {.axes = {0}}); });
  check_operator("dropout", [](const Cache& c) { return dropout(c[0], 0.5, Phase::training); });
  check_operator("normal_like", [](const Cache& c) { return normal_like(c[0]); });
  check_operator("add_assign", [](const Cache& c) { return add_assign(c[0], c[1]); });
  check_operator("add_assign of a number", [](const Cache& c) { return add_assign(c[0], 3); });
  check_operator("several", [](const Cache& c) { return square(c[0] - c[1]) * 2; });
}

TEST_CASE("a gradient is what it would be, whoever frees the operator's arguments meanwhile") {
  for (const bool drops : {false, true}) {
    Tensor w;
    const auto make = [&] {
      w = Tensor::full({kColumns, kColumns}, 0.5).with_grad();
      return filled();
    };
    check_at_every_level(make, [&](Cache& cache) {
      const Tensor y = drops ? dropout(cache[0], 0.5, Phase::training) : cache[0] - cache[1];
      mean(square(matmul(y, w))).backward();
      return w.grad().to_vector<float>();
    });
  }
}

namespace {

// Runs a program that keeps several losses and goes on with the last.
void check_losses(const std::function<void(Cache&, const Parameters&)>& go_on) {
  std::optional<Parameters> parameters;
  const auto make = [&] {
    parameters.emplace(Device::cpu(), Seed{1});
    const models::Mlp model(*parameters, {kColumns, kColumns, kColumns});
    const Tensor x = Tensor::full({kRows, kColumns}, 0.5);
    Cache losses;
    losses.push_back(Tensor::full({}, kRows, DType::i64));  // the number of samples of each loss
    for (int i = 0; i < 3; ++i) losses.push_back(mean(square(model(x))));
    return losses;
  };
  check_at_every_level(make, [&](Cache& losses) {
    go_on(losses, *parameters);
    Values values;
    for (const auto& entry : parameters->entries()) {
      const Tensor& gradient = entry.tensor.grad();
      const Values of = (gradient.defined() ? gradient : entry.tensor).to_vector<float>();
      values.insert(values.end(), of.begin(), of.end());
    }
    return values;
  });
}

}  // namespace

TEST_CASE("a backward pass and a step finish, whoever frees the loss they were given meanwhile") {
  check_losses([](Cache& losses, const Parameters&) { losses.back().backward(); });
  check_losses([](Cache& losses, const Parameters& parameters) {
    optim::Adam().minimize(losses.back(), parameters);
  });
  check_losses([](Cache& losses, const Parameters& parameters) {
    optim::Accumulator(optim::Adam(), {.samples = kRows})
        .minimize(losses.back(), parameters, losses.front());
  });
}
