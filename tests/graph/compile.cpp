// Compiled steps do what their lines do eagerly.
#include <atomic>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "ebb/ebb.h"
#include "ebb/tests/bytes.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/infinity.h"
#include "ebb/tests/line.h"

namespace ebb::tests {
namespace {

// A model with everything that a step may change, and what programs keep beside it.
struct TrainedModel {
  explicit TrainedModel(const Device& device)
      : params(device, Seed{7}),
        hidden(params.scope("hidden"), 6, 8, Activation::tanh),
        norm(params.scope("norm"), 8),
        out(params.scope("out"), 8, 3),
        average(params.scope("hidden")),
        seen(Tensor::zeros({}, DType::f32, device)) {}

  Tensor scores(const Tensor& x, Phase phase = Phase::training) const {
    return out(dropout(norm(hidden(x), phase), 0.25, phase));
  }
  Tensor loss(const Tensor& x, const Tensor& y) const {
    return softmax_cross_entropy(scores(x), y);
  }

  Parameters params;
  models::Dense hidden;
  models::BatchNorm norm;
  models::Dense out;
  optim::MovingAverage average;
  Tensor seen;  // a captured tensor that steps update
};

// What programs write in a step; some leave a gradient for the next.
struct Loop {
  const char* name;
  std::function<Tensors(TrainedModel&, const Tensor& x, const Tensor& y)> step;
};

const std::vector<Loop>& loops() {
  static const optim::Adam adam(
      {.learning_rate = optim::cosine(1e-2, {.warm_up = 2, .steps = 20})});
  static const std::vector<Loop> all = {
      {"minimize",
       [](TrainedModel& m, const Tensor& x, const Tensor& y) -> Tensors {
         return {adam.minimize(m.loss(x, y), m.params)};
       }},
      {"backward, step, zero_grad",
       [](TrainedModel& m, const Tensor& x, const Tensor& y) -> Tensors {
         const Tensor loss = m.loss(x, y);
         loss.backward();
         adam.step(m.params);
         m.params.zero_grad();
         return {loss};
       }},
      {"two passes, clipped gradients, several results",
       [](TrainedModel& m, const Tensor& x, const Tensor& y) -> Tensors {
         const Tensor loss = m.loss(x, y);
         loss.backward();
         mean(square(m.hidden(x))).backward();
         Tensors gradients;
         for (const Tensor& parameter : m.params.tensors()) gradients.push_back(parameter.grad());
         const optim::ClippedGradients clipped = optim::clip_by_global_norm(gradients, 0.1);
         adam.apply(clipped.gradients, m.params);
         m.params.zero_grad();
         return {loss, clipped.norm, Tensor(), m.hidden(x)};
       }},
      {"gradients that add up over calls",
       [](TrainedModel& m, const Tensor& x, const Tensor& y) -> Tensors {
         const Tensor loss = m.loss(x, y);
         loss.backward();
         return {loss};
       }},
      {"an accumulator",
       [](TrainedModel& m, const Tensor& x, const Tensor& y) -> Tensors {
         const optim::Accumulator accumulator(adam, {.samples = 9});
         return {accumulator.minimize(m.loss(x, y), m.params, rows(y))};
       }},
      {"two optimizers, an average, a counter",
       [](TrainedModel& m, const Tensor& x, const Tensor& y) -> Tensors {
         const Tensor first = adam.minimize(m.loss(x, y), m.params.scope("out"));
         const Tensor second = optim::Sgd({.learning_rate = 0.1, .momentum = 0.9})
                                   .minimize(m.loss(x, y), m.params.scope("hidden"));
         m.average.update();
         add_assign(m.seen, cast(rows(y), DType::f32));
         return {first, second, m.seen};
       }},
      {"recompute and gradients of gradients",
       [](TrainedModel& m, const Tensor& x, const Tensor& y) -> Tensors {
         const Tensor h = recompute(
             [&](const Tensor& in) { return dropout(m.hidden(in), 0.5, Phase::training); }, x);
         const Tensor mixed = (x + uniform_like(x)).with_grad();
         const Tensor slope = gradients(sum(m.hidden(mixed)), {mixed}, {.create_graph = true})[0];
         return {adam.minimize(softmax_cross_entropy(m.out(h), y) + mean(square(slope)), m.params)};
       }},
  };
  return all;
}

Tensors rows_of(int i, const Device& device) {
  const std::int64_t rows = i % 3 == 2 ? 2 : 4;
  std::vector<float> x;
  std::vector<std::int32_t> y;
  for (std::int64_t k = 0; k < rows * 6; ++k)
    x.push_back(0.1f * static_cast<float>((k * 7 + i) % 11));
  for (std::int64_t k = 0; k < rows; ++k) y.push_back(static_cast<std::int32_t>((k + i) % 3));
  return {Tensor::from(x, {rows, 6}, device), Tensor::from(y, {rows}, device)};
}

using Values = std::map<std::string, std::vector<std::byte>>;

void add_state(Values& values, const Parameters& params, const std::string& prefix) {
  for (const auto* list : {&params.entries(), &params.states(), &params.slots()})
    for (const auto& [name, tensor] : *list) values[prefix + name] = bytes_of(tensor);
  for (const auto& [name, tensor] : params.entries())
    if (tensor.grad().defined()) values[prefix + "gradient of " + name] = bytes_of(tensor.grad());
}

// Runs a loop whose surroundings change meanwhile; returns all that it computes and leaves.
Values run(const Loop& loop, bool compiled, bool passes = false) {
  const Device device = Device::cpu();
  set_seed(Seed{5});
  TrainedModel model(device);
  const auto body = [&](const Tensor& x, const Tensor& y) { return loop.step(model, x, y); };
  const auto traced = compile(body, {.passes = passes});
  Values values;
  for (int i = 0; i < 8; ++i) {
    const std::string at = std::to_string(i) + ' ';
    if (i == 3) model.params.scope("norm").set_trainable(false);
    if (i == 5) model.params.scope("norm").set_trainable(true);
    if (i == 6)
      optim::Lion({.learning_rate = 1e-3})
          .minimize(model.loss(rows_of(0, device)[0], rows_of(0, device)[1]), model.params);
    if (i == 7) model.params.zero_grad();
    const Tensors in = rows_of(i, device);
    const Tensors results = compiled ? traced(in[0], in[1]) : body(in[0], in[1]);
    for (const Tensor& result : results)
      values[at + std::to_string(values.size())] =
          result.defined() ? bytes_of(result) : std::vector<std::byte>();
    values[at + "draw"] = bytes_of(uniform({1}, {.device = device}));
    add_state(values, model.params, at);
  }
  return values;
}

}  // namespace

TEST_CASE("a compiled step computes, draws and leaves what its lines do, bit for bit") {
  for (const Loop& loop : loops()) {
    CAPTURE(loop.name);
    const Values eager = run(loop, false), compiled = run(loop, true);
    CHECK(eager.size() == compiled.size());
    for (const auto& [name, bytes] : eager) {
      CAPTURE(name);
      REQUIRE(compiled.contains(name));
      REQUIRE(compiled.at(name) == bytes);
    }
    run(loop, true, true);
  }
}

TEST_CASE("a compiled step refuses what it could not repeat, with the line") {
  const Device device = Device::cpu();
  TrainedModel model(device);
  const optim::Sgd sgd({.learning_rate = 0.1});
  const Tensor x = rows_of(0, device)[0];
  const Tensor scale = Tensor::full({}, 2, DType::f32, device);
  const Device other = own_test_device();
  const Tensor elsewhere = Tensor::full({}, 2, DType::f32, other);
  Tensor kept;
  Graph graph;
  const Tensor symbolic = graph.placeholder("x", DType::f32, {4, 6});
  const Tensor with_history = model.hidden(x) * 2, doubled = symbolic * 2;
  Session session(graph, {.device = device});

  struct Refused {
    std::function<Tensor(const Tensor&)> function;
    Tensor argument;
    const char* text;
  };
  const std::vector<Refused> all = {
      {[](const Tensor& in) { return in * sum(in).item<float>(); }, x, "[item] uses a value"},
      {[&](const Tensor& in) { return in * scale.item<float>(); }, x, "[item] uses a value"},
      {[](const Tensor& in) { return in * static_cast<double>(in.to_vector<float>()[0]); }, x,
       "[to_vector] uses a value"},
      {[](const Tensor& in) { return metrics::rmse(in, in) > 0 ? in : -in; }, x, "uses a value"},
      {[&](const Tensor& in) { return model.params.save("never.safetensors"), in; }, x,
       "[save] uses a value"},
      {[&](const Tensor& in) { return in * elsewhere; }, x, "and the compiled step runs on"},
      {[&](const Tensor& in) { return in * elsewhere.to(device); }, x, "which runs on one device"},
      {[&](const Tensor& in) { return in * Tensor::zeros({6}, DType::f32, other); }, x,
       "and the compiled step runs on"},
      {[](const Tensor& in) { return set_seed(Seed{1}), in * uniform_like(in); }, x,
       "set_seed() within a compiled step"},
      {[&](const Tensor& in) { return kept = tanh(in), in * 2; }, x,
       "[tanh] a tensor made by a compiled step is still held"},
      {[&](const Tensor& in) { return add_assign(in, 1), in; }, x, "cannot be updated in place"},
      {[&](const Tensor& in) { return matmul(in, in); }, x, "[matmul]"},
      {[](const Tensor& in) { return DetectNan(), in; }, x, "[DetectNan]"},
      {[&](const Tensor& in) {
         return session.run(doubled, {{symbolic, x}}), in;
       },
       x, "[run]"},
      {[&](const Tensor& in) { return in * sum(with_history); }, x, "would freeze"},
      {[&](const Tensor& in) { return sgd.minimize(sum(in), model.params), in; }, x,
       "depends on none of the"},
      {[&](const Tensor&) { return doubled; }, x, "of another graph"},
      {[&](const Tensor& in) {
         optim::Adam().minimize(sum(model.hidden(in)), model.params.scope("hidden"));
         return in * in.item<float>();
       },
       x, "[item] uses a value"},
      {[](const Tensor& in) { return in; }, Tensor(), "[compile] argument 1 of 1 holds nothing"},
      {[](const Tensor& in) { return in; }, symbolic, "[compile] argument 1 of 1 has no values"},
      {[](const Tensor& in) { return in; }, with_history, "with a history"},
  };
  for (const Refused& refused : all) {
    CAPTURE(refused.text);
    const auto step = compile(refused.function);
    CHECK(why_not_thrown_at<Error>(
              __FILE__ ":", [&] { step(refused.argument); }, refused.text) == "");
    CHECK(step.plans() == 0);
    kept = Tensor();
    CHECK(model.params.slots().empty());
  }
  const auto step = compile([](const Tensor& in) { return in * 2; });
  step(x);
  CHECK_ERROR(step(x.to(other)), Error, "but this step runs on");
  CHECK_ERROR(recompute([&](const Tensor& in) { return step(in); }, model.hidden(x)), Error,
              "use recompute() inside the step");
}

TEST_CASE("using a compiled result in a loss is an error, and detach() makes it a constant") {
  const Device device = Device::cpu();
  TrainedModel model(device);
  const Tensor x = rows_of(0, device)[0];
  const auto features = compile([&](const Tensor& in) { return tanh(model.hidden(in)); });
  const auto loss_of = compile([&](const Tensor& in) { return mean(square(model.hidden(in))); });
  const auto doubled = compile([&](const Tensor& in) { return in * 2; });

  {
    const NoGrad no_grad;
    features(x);
  }
  CHECK_ERROR_HERE(loss_of(x).backward(), Error, "result of a compiled step");
  CHECK_ERROR_HERE((loss_of(x) * 2 + 1).backward(), Error, "result of a compiled step");
  CHECK_ERROR_HERE(model.out(features(x)), Error, "result of a compiled step");
  CHECK_ERROR(loss_of(features(x)), Error, "has no history");
  CHECK_ERROR(recompute([&](const Tensor& in) { return model.out(in); }, features(x)), Error,
              "result of a compiled step");
  Tensor made;
  const auto captures = compile([&](const Tensor& in) { return mean(model.out(made) * in); });
  made = features(x);
  CHECK_ERROR(captures(Tensor::full({}, 1, DType::f32, device)), Error,
              "result of a compiled step");
  Graph graph;
  CHECK_ERROR(graph.placeholder("x", DType::f32, {}) * made, Error, "result of a compiled step");
  const Tensor leaf = Tensor::from({2.f, 3.f}).with_grad();
  compile([&] { sum(leaf * leaf).backward({.create_graph = true}); })();
  const Tensor gradient = leaf.grad();
  leaf.zero_grad();
  CHECK_ERROR(sum(square(gradient)) + sum(leaf), Error, "result of a compiled step");
  mean(model.out(features(x).detach())).backward();
  mean(model.out(doubled(features(x).detach()))).backward();  // doubled() reads no leaf
  const NoGrad no_grad;
  CHECK_NOTHROW(model.out(features(x)));
}

TEST_CASE("tensors that stand twice, constants and leaves made inside are what they are in eager") {
  const Tensor base = Tensor::from({1.f, 2.f}), other = Tensor::from({5.f, 7.f});
  Tensor w;
  const std::vector<std::function<Tensor(const Tensor&, const Tensor&)>> all = {
      [](const Tensor& a, const Tensor& b) {
        const Tensor loss = sum(square(a) * b);
        loss.backward();
        return loss.detach();
      },
      [](const Tensor& a, const Tensor& b) {
        const Tensor kept = Tensor::from({1.f, 1.f});
        return add_assign(kept, a * b), kept.clone();
      },
      [&](const Tensor& a, const Tensor& b) {
        const Tensor leaf = base.with_grad();
        sum(leaf * square(a) * b).backward();
        return leaf.grad() + 0;
      },
      [](const Tensor& a, const Tensor& b) {
        const Tensor before = a.grad().defined() ? a.grad() * 2 : b;
        return a.zero_grad(), before;
      },
      [](const Tensor& a, const Tensor& b) {
        a.zero_grad();
        const Tensor after = a.grad().defined() ? a.grad() * 2 : b + 0;
        return sum(a * b).backward(), after;
      },
      [](const Tensor& a, const Tensor& b) {
        const Tensor leaf = b.detach().with_grad();  // gradients of 0 on the way
        return a.detach() + gradient(sum(round(leaf)), leaf);
      },
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto step = compile(all[i]);
    for (const bool is_twice : {true, false}) {
      CAPTURE(i, is_twice);
      const auto values_of = [&](const auto& call) {
        w = base.with_grad();
        std::vector<float> values;
        for (int n = 0; n < 3; ++n) {
          const Tensor result = call(w, is_twice ? w : other);
          for (const Tensor& each : {result, w.grad()})
            if (each.defined())
              for (const float value : each.to_vector<float>()) values.push_back(value);
        }
        return values;
      };
      CHECK(values_of(step) == values_of(all[i]));
      CHECK(step.plans() <= 4);
    }
  }

  const Tensor state = Tensor::from({2.f, 3.f});
  const auto updates = compile([&](const Tensor& a) { return assign(state, state * 10), sum(a); });
  CHECK_ERROR(updates(state), Error, "captures and updates");
  CHECK(state.to_vector<float>() == std::vector<float>{2, 3});
  w = base.with_grad();
  const auto differentiates =
      compile([&](const Tensor& a) { return sum(square(a) * w).backward(); });
  CHECK_ERROR(differentiates(w), Error, "captures and differentiates");

  const auto lists = compile([](const auto& a, const auto& b) {
    if constexpr (std::is_same_v<std::decay_t<decltype(a)>, Tensor>)
      return a - b[0] - b[1];
    else
      return a[0] + a[1] + b;
  });
  CHECK(lists(other, Tensors{base, base}).to_vector<float>() == std::vector<float>{3, 3});
  CHECK(lists(Tensors{base, base}, other).to_vector<float>() == std::vector<float>{7, 11});
  const auto over = compile([](const Tensor& a, float b) { return a / b; });
  for (const float b : {0.f, -0.f, std::nanf(""), std::nanf("")})
    CHECK(std::signbit(over(base, b)[0].item<float>()) == std::signbit(base[0].item<float>() / b));
  CHECK(over.plans() == 3);
}

TEST_CASE("a call that is refused has not happened, and the next goes on") {
  const Device device = Device::cpu();
  const Loop& loop = loops().back();
  for (const bool nan : {false, true}) {
    CAPTURE(nan);
    if (!nan && !has_small_pages(__FILE__, __LINE__)) continue;  // a page has room
    const auto values_of = [&](bool refuses) {
      set_seed(Seed{5});
      TrainedModel model(device);
      const auto step =
          compile([&](const Tensor& x, const Tensor& y) { return loop.step(model, x, y); });
      Values before, after;
      for (int i = 0; i < 3; ++i) {
        const Tensors in = rows_of(i, device);
        if (refuses) {
          before.clear(), after.clear();
          add_state(before, model.params, "");
          if (nan) {
            const Tensor bad = in[0] * kNaN;
            const DetectNan detect;
            CHECK_THROWS_AS(step(bad, in[1]), NotANumber);
          } else {
            memory::release_cached(device);
            memory::set_limit(device, memory::stats(device).reserved.current);
            CHECK_THROWS_AS(step(in[0], in[1]), OutOfMemory);
            memory::set_limit(device, std::nullopt);
          }
          add_state(after, model.params, "");
          CHECK(before == after);
        }
        step(in[0], in[1]);
      }
      add_state(after, model.params, "end ");
      return after;
    };
    const Values plain = values_of(false);
    Values refused = values_of(true);
    for (const auto& [name, bytes] : plain)
      if (name.starts_with("end ")) CHECK(refused.at(name) == bytes);
  }

  const Tensor leaf = Tensor::full({2}, 3).with_grad();
  sum(leaf).backward();
  const Tensor count = Tensor::zeros({}, DType::f32);
  auto adds = compile([&](const Tensor& x) {
    add_assign(count, 1);
    sum(log(x * count) * leaf).backward();
  });
  {
    const DetectNan detect;
    CHECK_THROWS_AS(adds(Tensor::full({2}, -1)), NotANumber);
  }
  auto moved = std::move(adds);
  CHECK_ERROR(adds.plans(), Error, "moved");
  CHECK(count.item<float>() == 0);
  moved(Tensor::full({2}, 1));
  CHECK(leaf.grad().to_vector<float>() == std::vector<float>{1, 1});
}

TEST_CASE("a failed attempt takes back gradients of a compiled step and keeps its updates",
          "[row11]") {
  struct Halted : std::exception {};
  const Tensor leaf = Tensor::full({2}, 3).with_grad(), x = Tensor::full({2}, 1),
               count = Tensor::zeros({}, DType::f32);
  const auto add = compile([&](const Tensor& in) { sum(leaf * in).backward(); });
  const auto renew =
      compile([&](const Tensor& in) { leaf.zero_grad(), sum(leaf * in).backward(); });
  const auto counts = compile(
      [&](const Tensor& in) { return add_assign(count, 1), dropout(in, 0.5, Phase::training); });
  const auto halted = [&](const auto& step) {
    const auto lines = [&] { step(x), throw Halted(); };
    CHECK_THROWS_AS(attempt(lines), Halted);
  };
  halted(add);
  CHECK_FALSE(leaf.grad().defined());
  add(x);
  halted(add);
  CHECK_ERROR(add(x), Error, "incomplete");
  renew(x);
  add(x);
  CHECK(leaf.grad().to_vector<float>() == std::vector<float>{2, 2});
  const std::uint64_t draws = detail::generator().counter;
  halted(counts);
  CHECK(count.item<float>() == 1);
  CHECK(detail::generator().counter > draws);
  count.impl()->storage->tear("a test");
  CHECK_ERROR(counts(x), Error, "may hold half of it");
  x.impl()->storage->tear("a test");
  CHECK_ERROR(add(x), Error, "may hold half of it");
}

TEST_CASE("a plan is kept for each set of arguments, the least recently used goes") {
  const Device device = Device::cpu();
  int traces = 0;
  const auto step = compile(
      [&](const Tensor& x, const std::string& how, int times) {
        ++traces;
        Tensor y = x;
        for (int i = 0; i < times; ++i) y = how == "add" ? y + 1 : y * 2;
        return std::pair(y, sum(y));
      },
      {.max_plans = 2});
  const auto value = [&](std::int64_t n, const char* how, int times, DType dtype = DType::f32) {
    return step(Tensor::full({n}, 3, dtype, device), how, times).second.item<float>();
  };
  CHECK(value(2, "add", 1) == 8);
  CHECK(value(2, "add", 1) == 8);
  CHECK(traces == 1);
  CHECK(value(2, "double", 3) == 48);
  CHECK(value(2, "add", 1) == 8);
  CHECK(traces == 2);
  CHECK(value(3, "add", 1) == 12);  // the doubling goes
  CHECK(value(2, "add", 1) == 8);
  CHECK(traces == 3);
  CHECK(value(2, "double", 3) == 48);
  CHECK(value(2, "double", 3, DType::i32) == 48);
  CHECK(traces == 5);
  CHECK(step.plans() == 2);
  CHECK_ERROR(compile([](const Tensor& x) { return x; }, {.max_plans = 0}), Error, "at least 1");
}

TEST_CASE("a compiled step holds its arena alone, tells what it takes, and gives it back") {
  const Device device = Device::cpu();
  const std::size_t before = memory::stats(device).allocated.current;
  {
    TrainedModel model(device);
    const optim::Adam adam;
    const Tensors in = rows_of(0, device);
    const auto body = [&](const Tensor& x, const Tensor& y) {
      return adam.minimize(model.loss(x, y), model.params);
    };
    CHECK(compile(body).plan(in[0], in[1]).peak_bytes > 0);
    CHECK(model.params.slots().empty());
    body(in[0], in[1]);  // makes the slots
    memory::PeakScope eager(device);
    const std::size_t held = memory::stats(device).allocated.current;
    body(in[0], in[1]);
    {
      const auto step = compile(body);
      const memory::Plan plan = step.plan(in[0], in[1]);
      CHECK(memory::stats(device).allocated.current == held);
      memory::PeakScope compiled(device);
      step(in[0], in[1]);
      step(in[0], in[1]);
      CHECK(step.memory().total_bytes == plan.peak_bytes);
      CHECK(step.memory().captured_bytes == plan.captured_bytes);
      CHECK(plan.captured_bytes > 0);
      CHECK((std::ostringstream() << plan).str().find("captured, besides") != std::string::npos);
      CHECK(step.stats().allocated.peak == plan.peak_bytes);
      CHECK(memory::stats(device).allocated.current == held + plan.peak_bytes);
      CHECK(compiled.bytes() <= eager.bytes());
    }
    CHECK(memory::stats(device).allocated.current == held);
  }
  CHECK(memory::stats(device).allocated.current == before);
}

TEST_CASE("a compiled step is made to keep to a budget, and computes the same") {
  const Device device = Device::cpu();
  const auto train = [&](std::optional<memory::Limit> budget) {
    Parameters params(device, Seed{7});
    const models::Mlp model(params, {64, 64, 64, 64, 64, 64, 64, 64, 64, 1});
    const optim::Sgd sgd({.learning_rate = 0.1});
    const auto step =
        compile([&](const Tensor& x) { return sgd.minimize(mean(square(model(x))), params); },
                {.budget = budget});
    const Tensor x = Tensor::full({16384, 64}, 0.5, DType::f32, device);
    const auto loss = bytes_of(step(x));
    return std::tuple(loss, bytes_of(params.tensors()[0]), step.plan(x), step.stats());
  };
  const auto [loss, weight, plan, stats] = train({});
  const std::size_t budget = plan.reserved_bytes * 2 / 3;
  const auto [fitted_loss, fitted_weight, fitted, fitted_stats] = train(budget);
  CHECK(fitted_loss == loss);
  CHECK(fitted_weight == weight);
  CHECK(fitted.repeated_nodes > 0);
  CHECK(fitted.unbudgeted_bytes == plan.reserved_bytes);
  CHECK(fitted_stats.reserved.peak <= budget);
  CHECK(fitted_stats.limit == budget);
  CHECK_ERROR(train(1), Error, "the least budget with which these fetches and shapes run is");
}

TEST_CASE("threads take turns in one step, and a step within a step is traced into it") {
  const Device device = Device::cpu();
  const Tensor count = Tensor::zeros({}, DType::f32, device);
  int traces = 0;
  const auto inner = compile([&](const Tensor& x) {
    ++traces;
    add_assign(count, 1);
    return x + count;
  });
  const auto outer = compile([&](const Tensor& x) { return inner(x) + inner(x); });
  // Large enough to be computed by two threads at a time, if they do.
  const Tensor one = Tensor::full({1 << 16}, 1, DType::f32, device);
  CHECK(outer(one).item<float>({0}) == 5);
  CHECK(traces == 2);
  CHECK(inner.plans() == 0);
  std::vector<std::thread> threads;
  std::atomic<int> torn = 0;
  const int turns = on_host() ? 300 : 20;
  for (int t = 0; t < 3; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < turns; ++i) {
        const Tensor made = outer(one);
        torn += max(made).item<float>() != min(made).item<float>();
      }
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(torn == 0);
  CHECK(count.item<float>() == static_cast<float>(6 * turns + 2));
  CHECK(traces == 2);
}

TEST_CASE("a captured tensor keeps its identity: what changes outside is seen inside") {
  const Device device = Device::cpu();
  TrainedModel model(device);
  const Tensor rate = Tensor::full({}, 0.5, DType::f64, device);
  const optim::Sgd sgd{optim::LearningRate(rate)};
  const auto step =
      compile([&](const Tensor& x) { return sgd.minimize(sum(model.hidden(x)), model.params); });
  const auto evaluate = compile([&](const Tensor& x) { return sum(model.hidden(x)); });
  const Tensor x = rows_of(0, device)[0];
  for (int i = 0; i < 3; ++i) {
    const NoGrad no_grad;
    assign(model.params["hidden.bias"], Tensor::full({8}, 0.1 * i, DType::f32, device));
    CHECK(bytes_of(evaluate(x)) == bytes_of(sum(model.hidden(x))));
  }
  step(x);
  const auto before = bytes_of(model.params["hidden.weight"]);
  assign(rate, Tensor::zeros({}, DType::f64, device));
  step(x);
  CHECK(bytes_of(model.params["hidden.weight"]) == before);
}

}  // namespace ebb::tests
