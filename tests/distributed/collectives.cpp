#include <chrono>
#include <thread>

#include "ebb/tests/bytes.h"
#include "ebb/tests/distributed/ranks.h"

namespace ebb::tests {
namespace {

// A tensor that differs by rank, of values that sum exactly.
Tensor ranks_own(const World& world, DType dtype, std::int64_t rows = 8) {
  const Tensor x =
      arange(static_cast<double>(rows * 3), {.dtype = DType::f32}) + 100.0 * world.rank();
  return cast(reshape(x, {rows, 3}), dtype);
}

TEST_CASE("Collectives give every rank what their names say, in all modes and dtypes") {
  for (const bool ordered : {false, true}) {
    const World world({.ordered = ordered});
    const int size = world.size();
    const double rank_sum = 100.0 * size * (size - 1) / 2;
    for (const InMode::Kind mode : kModes)
      for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::i32, DType::i64}) {
        INFO(name(dtype) << ", mode " << mode);
        const std::int64_t rows = 4 * size;
        const Tensor x = ranks_own(world, dtype, rows);
        InMode in(mode);
        const auto all = in.function({{dtype, {rows, 3}}}, [&](const Tensors& t) -> Tensors {
          return {distributed::all_reduce(t[0], world),
                  distributed::all_reduce(t[0], world, ReduceOp::max),
                  distributed::all_gather(t[0], world), distributed::reduce_scatter(t[0], world),
                  distributed::broadcast(t[0], world, size - 1)};
        });
        const Tensors results = all({x});
        const Tensor base =
            cast(reshape(arange(static_cast<double>(rows * 3), {.dtype = DType::f32}), {rows, 3}),
                 DType::f64);
        const auto same = [](const Tensor& got, const Tensor& want) {
          return got.shape() == want.shape() &&
                 max(abs(cast(got, DType::f64) - want)).item<double>() == 0;
        };
        CHECK(same(results[0], base * size + rank_sum));
        CHECK(same(results[1], base + 100.0 * (size - 1)));
        for (int k = 0; k < size; ++k)
          CHECK(same(slice(results[2], k * rows, (k + 1) * rows), base + 100.0 * k));
        CHECK(same(results[3],
                   slice(base * size + rank_sum, world.rank() * 4, world.rank() * 4 + 4)));
        CHECK(same(results[4], base + 100.0 * (size - 1)));
      }
  }
}

TEST_CASE("Large sums in place are exact, however many elements a rank's share has") {
  const World world;
  const int size = world.size();
  for (const DType dtype : {DType::f32, DType::f64})
    for (const std::int64_t elements : {16'384, 50'001, 200'003}) {
      INFO(name(dtype) << ", " << elements);
      const Tensor base = arange(static_cast<double>(elements), {.dtype = dtype});
      const Tensor begun =
          ebb::detail::begin_total(base + static_cast<double>(world.rank()), world, "numbers");
      const Tensor sum = ebb::detail::end_total(begun, world);
      const Tensor want = base * size + 0.5 * size * (size - 1);
      CHECK(max(abs(cast(sum - want, DType::f64))).item<double>() == 0);
    }
}

TEST_CASE("Gradients of collectives are those of the sum of all ranks' losses") {
  const World world;
  const int size = world.size();
  for (const InMode::Kind mode : kModes) {
    InMode in(mode, DType::f64);
    // Each rank's loss weighs the result by its own numbers.
    const auto gradient_of = [&](const std::function<Tensor(const Tensor&)>& f) {
      const Tensor x = ranks_own(world, DType::f64, 4 * size).with_grad();
      const auto step = in.function({{x.dtype(), x.shape()}}, [&](const Tensors& t) -> Tensors {
        const Tensor y = f(t[0]);
        return {gradient(sum(y * y), t[0])};
      });
      return step({x})[0];
    };
    if (mode == InMode::graph) continue;  // a placeholder has no gradient
    const Tensor x = ranks_own(world, DType::f64, 4 * size);
    const auto near = [](const Tensor& a, const Tensor& b) {
      return max(abs(a - b)).item<double>() < 1e-9 * (1 + max(abs(b)).item<double>());
    };
    const Tensor sum_of_all = distributed::all_reduce(x, world);
    CHECK(near(gradient_of([&](const Tensor& t) { return distributed::all_reduce(t, world); }),
               sum_of_all * (2.0 * size)));
    CHECK(near(gradient_of([&](const Tensor& t) {
                 return distributed::all_reduce(t, world, ReduceOp::mean);
               }),
               sum_of_all * (2.0 / size)));
    CHECK(near(gradient_of([&](const Tensor& t) { return distributed::all_gather(t, world); }),
               x * (2.0 * size)));
    CHECK(near(gradient_of([&](const Tensor& t) { return distributed::reduce_scatter(t, world); }),
               sum_of_all * 2));
    const Tensor from_last = distributed::broadcast(x, world, size - 1);
    CHECK(near(
        gradient_of([&](const Tensor& t) { return distributed::broadcast(t, world, size - 1); }),
        from_last * (world.rank() == size - 1 ? 2.0 * size : 0.0)));
    const Tensor greatest = distributed::all_reduce(x, world, ReduceOp::max);
    CHECK(near(gradient_of([&](const Tensor& t) {
                 return distributed::all_reduce(t, world, ReduceOp::max);
               }),
               cast(equal(x, greatest), DType::f64) * greatest * (2.0 * size)));
  }
}

TEST_CASE("What one of two ranks sends the other receives, and its gradient comes back") {
  const World world;
  const World pair = world.split(world.rank() / 2);
  if (pair.size() < 2) {
    CHECK_ERROR(distributed::send(ones({3}), pair), Error, "takes a world of two ranks");
    return;
  }
  const bool sends = pair.rank() == 0;
  for (const InMode::Kind mode : kModes)
    for (const DType dtype : {DType::f32, DType::f16, DType::i32}) {
      INFO(name(dtype) << ", mode " << mode);
      InMode in(mode);
      const auto pass = in.function({{dtype, {8, 3}}}, [&](const Tensors& t) -> Tensors {
        if (!sends) return {distributed::recv(t[0], pair)};
        const Tensor sent = distributed::send(t[0], pair);
        return {mode == InMode::graph ? sent : t[0]};  // a graph alone must be asked for it
      });
      const Tensor y = pass({ranks_own(pair, dtype)})[0];
      CHECK(bytes_of(y) == bytes_of(reshape(arange(24, {.dtype = dtype}), {8, 3})));
    }
  // The sender's network goes on on the receiver: a step of both is one process's.
  for (const InMode::Kind mode : kModes) {
    InMode in(mode, DType::f64);
    const Tensor first = in.parameters.declare("first", {3}, initializers::ones());
    const Tensor second = in.parameters.declare("second", {3}, initializers::ones());
    const optim::Sgd sgd({.learning_rate = 0.1});
    const auto step = in.function({{DType::f64, {3}}}, [&](const Tensors& t) -> Tensors {
      if (sends) return {sgd.minimize(sum(distributed::send(first * t[0], pair)), in.parameters)};
      const Tensor x = distributed::recv(first * 0, pair);  // first leads the gradient on
      return {sgd.minimize(sum(square(x * second)), in.parameters)};
    });
    const std::uint64_t sent = pair.sent_bytes();
    const Tensor x = Tensor::from({1.0, 2.0, 3.0});
    const Tensor loss = step({x})[0];
    CHECK(loss.item<double>() == (sends ? 6.0 : 14.0));
    const char* const trained = sends ? "first" : "second";
    CHECK(max(abs(in[trained] - (1.0 - 0.2 * square(x)))).item<double>() < 1e-12);
    CHECK(pair.sent_bytes() - sent == 3 * sizeof(double));
  }
}

TEST_CASE("Two ranks that both send are an error on both") {
  const World world;
  const World pair = world.split(world.rank() / 2);
  if (pair.size() < 2) return;
  const std::string error = error_of([&] { distributed::send(ones({3}), pair); });
  INFO(error);
  CHECK(error.find("rank 1 calls broadcast of f32[3], root 1") != std::string::npos);
}

TEST_CASE("Gradients that go to different roots are an error on all") {
  if (World().size() == 1) return;
  const World world;
  const Tensor x = ones({3}).with_grad();
  const Tensor sums[] = {sum(distributed::broadcast(x, world, 0)),
                         sum(distributed::broadcast(x, world, 1))};
  const std::string error = error_of([&] { sums[world.rank() == 1].backward(); });
  CHECK(error.find("broadcast's gradient of f32[3], root 1") != std::string::npos);
}

TEST_CASE("The greatest of numbers with a NaN among them is NaN") {
  const World world;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16})
    for (int of = 0; of < world.size(); ++of) {
      const Tensor x = Tensor::full({2}, world.rank() == of ? NAN : 1.0, dtype);
      const Tensor greatest = distributed::all_reduce(x, world, ReduceOp::max);
      CHECK(std::isnan(cast(greatest, DType::f32).item<float>({1})));
    }
}

TEST_CASE("A rank that is late changes nothing") {
  const World world;
  Tensor sum = zeros({});
  for (int i = 0; i < 20; ++i) {
    if ((i * 7 + world.rank() * 3) % 5 == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    sum = sum + distributed::all_reduce(Tensor::from(static_cast<float>(world.rank() + i)), world);
  }
  const int size = world.size();
  CHECK(sum.item<float>() == static_cast<float>(20 * size * (size - 1) / 2 + 190 * size));
}

TEST_CASE("A world that has been moved from is a handle of it still") {
  World world;
  const World other = std::move(world);
  CHECK(world == other);  // NOLINT
}

TEST_CASE("A simulated world is not split: nobody knows its colors") {
  CHECK(error_of([] { World::simulated(0, 2).split(0); }) != "");
  CHECK(World::simulated(0, 1).split(0).size() == 1);
}

TEST_CASE("A world is split by color into worlds of their own") {
  const World world;
  const World half = world.split(world.rank() % 2);
  CHECK(half.size() == (world.size() + 1 - world.rank() % 2) / 2);
  CHECK(half.rank() == world.rank() / 2);
  const Tensor sum = distributed::all_reduce(Tensor::from(static_cast<float>(world.rank())), half);
  float expected = 0;
  for (int k = world.rank() % 2; k < world.size(); k += 2) expected += static_cast<float>(k);
  CHECK(sum.item<float>() == expected);
}

}  // namespace
}  // namespace ebb::tests
