// Optimizers that are given a scope: the parameters they update, and the owners of their slots.
#include <filesystem>

#include "ebb/ebb.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/optim/train.h"
#include "ebb/tests/uniform.h"

namespace ebb::tests {
namespace {

// Declares two parts of two parameters each.
void declare_parts(const Parameters& parameters) {
  for (const char* part : {"g", "d"}) {
    parameters.scope(part).declare("w", {3, 4}, kUniform);
    parameters.scope(part).declare("b", {4}, kUniform);
  }
}

Tensor loss_of(const Parameters& p) {
  return mean(square(p["g.w"] * p["d.w"] + p["g.b"] - p["d.b"]));
}

Training training_of(std::vector<Step> steps) { return {declare_parts, std::move(steps)}; }

std::int64_t count_of(const Values& values, const std::string& name) {
  return values.at(name).item<std::int64_t>();
}

// Returns the values whose names begin with `prefix`.
Values below(const Values& values, const std::string& prefix) {
  Values part;
  for (const auto& [name, value] : values)
    if (name.starts_with(prefix)) part.emplace(name, value);
  return part;
}

}  // namespace

TEST_CASE("a step leaves bit-identical what is not in its scope, or what the loss only reads",
          "[optim][scope]") {
  const bool as_graph = GENERATE(false, true);
  const Step of_scope = [](const Parameters& p) {
    return optim::AdamW().minimize(loss_of(p), p.scope("g"));
  };
  const Step of_read = [](const Parameters& p) {
    const Tensor constant = p["d.w"].detach() + fill_like(p["d.w"], 0.5);
    const Tensor loss = mean(square(p["g.w"] * constant)) + mean(square(p["g.b"]));
    return optim::AdamW({.weight_decay = 0.5}).minimize(loss, p);
  };
  const Values start = train(as_graph, training_of({}), 0);
  for (const Step& step : {of_scope, of_read}) {
    const Values end = train(as_graph, training_of({step}), 3);
    check_bits(below(end, "d."), below(start, "d."));
    for (const char* name : {"g.w", "g.b"}) CHECK_FALSE(bit_equal(end.at(name), start.at(name)));
  }
  CHECK(names_of(train(as_graph, training_of({of_scope}), 1)) ==
        std::vector<std::string>{"d.b", "d.w", "g.adamw/step", "g.b", "g.b/g.adamw.first_moment",
                                 "g.b/g.adamw.second_moment", "g.w", "g.w/g.adamw.first_moment",
                                 "g.w/g.adamw.second_moment"});
}

TEST_CASE("optimizers on two scopes share nothing", "[optim][scope]") {
  const bool as_graph = GENERATE(false, true);
  // Each loss is of one part alone, so that training a part alone, with the other frozen, must give
  // the same bits.
  const auto loss = [](const Parameters& p, const char* part) {
    return sum(square(p.scope(part)["w"])) + sum(square(p.scope(part)["b"]));
  };
  const Step fast = [&](const Parameters& p) {
    return optim::Adam({.learning_rate = 0.1}).minimize(loss(p, "g"), p.scope("g"));
  };
  const Step slow = [&](const Parameters& p) {
    return optim::Adam({.learning_rate = 0.001, .beta1 = 0.5}).minimize(loss(p, "d"), p.scope("d"));
  };
  const Values both = train(as_graph, training_of({fast, slow, fast}), 3);
  check_bits(below(both, "g."), below(train(as_graph, training_of({fast, fast}), 3), "g."));
  check_bits(below(both, "d."), below(train(as_graph, training_of({slow}), 3), "d."));
  CHECK(count_of(both, "g.adam/step") == 6);
  CHECK(count_of(both, "d.adam/step") == 3);
}

TEST_CASE("equal in scope, rule and name is one optimizer, however often it is made",
          "[optim][scope]") {
  const bool as_graph = GENERATE(false, true);
  const auto with = [](const std::string& name) -> Step {
    return [name](const Parameters& p) {
      return optim::Adam({.name = name}).minimize(loss_of(p), p.scope("g"));
    };
  };
  const Values one = train(as_graph, training_of({with(""), with("")}), 2);
  CHECK(count_of(one, "g.adam/step") == 4);
  CHECK(one.size() == 4 + 2 * 2 + 1);
  const Values two = train(as_graph, training_of({with("a"), with("b")}), 2);
  CHECK(count_of(two, "g.adam:a/step") == 2);
  CHECK(count_of(two, "g.adam:b/step") == 2);
  CHECK(two.contains("g.w/g.adam:a.first_moment"));
  CHECK_FALSE(bit_equal(two.at("g.w/g.adam:a.first_moment"), two.at("g.w/g.adam:b.first_moment")));
}

TEST_CASE("where scopes overlap, each optimizer has moments of its own", "[optim][scope]") {
  const bool as_graph = GENERATE(false, true);
  const auto linear = [](const Parameters& p) { return sum(p["g.w"]) + sum(p["d.w"]); };
  const Values values =
      train(as_graph,
            training_of({[&](const Parameters& p) { return optim::Adam().minimize(linear(p), p); },
                         [&](const Parameters& p) {
                           return optim::Adam().minimize(linear(p) * 3, p.scope("g"));
                         }}),
            1);
  CHECK(count_of(values, "adam/step") == 1);
  CHECK(count_of(values, "g.adam/step") == 1);
  const std::vector<double> tenth(12, static_cast<double>(1 - 0.9)), thrice(12, 3 * (1 - 0.9));
  CHECK(distance(values_of(values.at("g.w/adam.first_moment")), tenth) < 1e-6);
  CHECK(distance(values_of(values.at("d.w/adam.first_moment")), tenth) < 1e-6);
  CHECK(distance(values_of(values.at("g.w/g.adam.first_moment")), thrice) < 1e-6);
  CHECK_FALSE(values.contains("d.w/g.adam.first_moment"));
  // Both optimizers moved it, each by its learning rate.
  const Values start = train(as_graph, training_of({}), 0);
  const std::vector<double> now = values_of(values.at("g.w")), then = values_of(start.at("g.w"));
  for (std::size_t i = 0; i < now.size(); ++i) CHECK(std::abs(then[i] - now[i] - 2e-3) < 1e-5);
}

TEST_CASE("apply makes the step that minimize makes", "[optim][scope]") {
  const bool as_graph = GENERATE(false, true);
  const optim::AdamW adamw({.learning_rate = 0.1});
  const Step minimize = [&](const Parameters& p) { return adamw.minimize(loss_of(p), p); };
  const Step apply = [&](const Parameters& p) {
    Tensors leaves;
    for (const auto& entry : p.entries()) leaves.push_back(entry.tensor);
    return adamw.apply(gradients(loss_of(p), leaves), p);
  };
  check_bits(train(as_graph, training_of({apply}), 3), train(as_graph, training_of({minimize}), 3));

  // A missing gradient leaves its parameter alone and makes no slots.
  const Values some = train(as_graph, training_of({[&](const Parameters& p) {
                              Tensors gradient(4);
                              gradient[1] = p["g.b"] * 2;
                              return adamw.apply(gradient, p);
                            }}),
                            1);
  const Values start = train(as_graph, training_of({}), 0);
  CHECK(some.size() == 4 + 2 + 1);
  CHECK_FALSE(bit_equal(some.at("g.b"), start.at("g.b")));
  CHECK(bit_equal(some.at("g.w"), start.at("g.w")));
}

TEST_CASE("apply takes parameters as gradients, with the values they had before the step",
          "[optim][scope]") {
  const bool as_graph = GENERATE(false, true);
  const optim::Sgd sgd({.learning_rate = 0.5});
  // Each moves by half of the other's old value.
  const Values end = train(as_graph, training_of({[&](const Parameters& p) {
                             return sgd.apply({p["d.w"], p["d.b"], p["g.w"], p["g.b"]}, p);
                           }}),
                           1);
  const Values start = train(as_graph, training_of({}), 0);
  for (const char* name : {"w", "b"}) {
    const Tensor g = start.at(std::string("g.") + name), d = start.at(std::string("d.") + name);
    CHECK(bit_equal(end.at(std::string("g.") + name), g - 0.5 * d));
    CHECK(bit_equal(end.at(std::string("d.") + name), d - 0.5 * g));
  }
}

TEST_CASE("apply returns the count of steps and says what does not fit", "[optim][scope]") {
  const Parameters parameters(Device::cpu(), Seed{1});
  declare_parts(parameters);
  const Parameters d = parameters.scope("d");
  const optim::Sgd sgd;
  const Tensor w = Tensor::full({3, 4}, 1), b = Tensor::full({4}, 1);
  CHECK(sgd.apply({w, b}, d).item<std::int64_t>() == 1);
  CHECK(sgd.apply({w, b}, d).item<std::int64_t>() == 2);
  const Values before = values_of(parameters);
  CHECK_ERROR(sgd.apply({w}, d), Error, "for each of the 2 parameters, not 1");
  CHECK_ERROR(sgd.apply(Tensors(2), d), Error, "no gradient is defined");
  CHECK_ERROR(sgd.apply({w, w}, d), Error, "no gradient of 'd.b'");
  CHECK_ERROR(sgd.apply({w, cast(b, DType::f64)}, d), Error, "no gradient of 'd.b'");
  CHECK_ERROR(sgd.apply({w, b.to(Device::cpu().twin())}, d), Error, "no gradient of 'd.b'");
  Graph graph;
  CHECK_ERROR(sgd.apply({w, graph.placeholder("b", DType::f32, {4})}, d), Error,
              "no gradient of 'd.b'");
  // A rate on another device or in a graph must be refused before the step is counted.
  const optim::Sgd elsewhere(
      {.learning_rate = Tensor::full({}, 1, DType::f64, Device::cpu().twin())});
  CHECK_ERROR(elsewhere.apply({w, b}, d), Error, "[learning rate]");
  const optim::Sgd symbolic({.learning_rate = graph.placeholder("rate", DType::f64, {})});
  CHECK_ERROR(symbolic.apply({w, b}, d), Error, "[learning rate]");
  check_bits(values_of(parameters), before);
}

TEST_CASE("an accumulator's count belongs to its scope, rule and name", "[optim][scope]") {
  const Parameters p(Device::cpu(), Seed{1});
  declare_parts(p);
  const Tensor two = Tensor::full({}, 2, DType::i64);
  const optim::Accumulator plain(optim::Adam(), {.samples = 3}),
      named(optim::Adam({.name = "x"}), {.samples = 3}), sgd(optim::Sgd(), {.samples = 3});
  for (const optim::Accumulator* accumulator : {&plain, &named, &sgd})
    accumulator->minimize(loss_of(p), p, two);
  plain.minimize(loss_of(p), p.scope("d"), two);
  for (const char* name : {"adam/samples", "adam:x/samples", "sgd/samples", "d.adam/samples"}) {
    CAPTURE(name);
    CHECK(p[name].item<std::int64_t>() == 2);
  }
  CHECK(p.contains("d.w/d.adam.accumulated"));
  CHECK(plain.flush(p.scope("d")).item<std::int64_t>() == 2);
  CHECK(plain.flush(p).item<std::int64_t>() == 2);
  CHECK(p["adam/samples"].item<std::int64_t>() == 0);
  CHECK(p["adam:x/samples"].item<std::int64_t>() == 2);
  CHECK_ERROR(sgd.flush(p.scope("d")), Error, "nothing has been accumulated");
}

namespace {

// Each optimizer has its own set, and its loss depends on both sets.
struct Gan {
  template <class Home>
  explicit Gan(const Home& home) : g(home, Seed{1}), d(home, Seed{2}) {
    g.declare("w", {4}, kUniform);
    d.declare("w", {4}, kUniform);
  }
  Tensor step_g() const { return adam.minimize(sum(square(g["w"] * d["w"] - 1)), g); }
  Tensor step_d() const { return adam.minimize(sum(square(g["w"] - d["w"])), d); }
  optim::Adam adam{{.learning_rate = 0.1}};
  Parameters g, d;
};

}  // namespace

TEST_CASE("two unnamed sets in one graph train beside each other, as they do in eager",
          "[optim][scope]") {
  const TemporaryFolder folder;
  const Gan eager(Device::cpu());
  Graph graph;
  const Gan pair(graph);
  const Tensor step_g = pair.step_g(), step_d = pair.step_d();
  Session session(graph), other(graph);
  session.initialize();
  other.initialize();
  const auto check_equal = [&](Session& of) {
    CHECK(bit_equal(of.value(pair.g["w"]), eager.g["w"]));
    CHECK(bit_equal(of.value(pair.d["w"]), eager.d["w"]));
  };
  for (int i = 0; i < 3; ++i) {
    session.run(step_g);
    eager.step_g();
    if (i > 0) continue;
    session.run(step_d);
    eager.step_d();
  }
  check_equal(session);
  CHECK(session.value(pair.g["adam/step"]).item<std::int64_t>() == 3);
  CHECK(session.value(pair.d["adam/step"]).item<std::int64_t>() == 1);

  // Files hold one set each, and either mode reads them.
  session.save(folder.path("g"), pair.g);
  session.save(folder.path("d"), pair.d);
  other.restore(folder.path("g"), pair.g);
  other.restore(folder.path("d"), pair.d);
  const Gan loaded(Device::cpu());
  loaded.g.load(folder.path("g"));
  CHECK(bit_equal(loaded.g["w/adam.first_moment"], eager.g["w/adam.first_moment"]));
  for (Session* each : {&session, &other}) each->run(step_g);
  eager.step_g();
  check_equal(session);
  check_equal(other);

  // Files and copies of a whole session are refused: a name would mean either set.
  const auto refused = [&](const auto& whole) {
    for (const std::string& text :
         {std::string("two sets of Parameters have a 'w', declared (") + __FILE__,
          std::string(") and (") + __FILE__})
      CHECK_ERROR(whole(), Error, text);
  };
  refused([&] { session.save(folder.path("all")); });
  CHECK_FALSE(std::filesystem::exists(folder.path("all")));
  refused([&] { other.restore(folder.path("g")); });
  refused([&] { other.copy_from(session); });
  check_equal(other);
  CHECK_ERROR(pair.g.declare("w", {4}, kUniform), Error, "there is a parameter \"w\" already");
}

TEST_CASE("training in parts goes on where a file left it, in either mode", "[optim][scope]") {
  const TemporaryFolder folder;
  const std::vector<Step> steps = {
      [](const Parameters& p) {
        return optim::Accumulator(optim::Adam({.learning_rate = 0.1, .state_dtype = DType::f64}),
                                  {.samples = 3, .sum_dtype = DType::f64})
            .minimize(loss_of(p), p.scope("g"), Tensor::full({}, 2, DType::i64));
      },
      [](const Parameters& p) {
        return optim::Sgd({.momentum = 0.9, .name = "d"}).minimize(loss_of(p), p.scope("d"));
      }};
  const Values whole = train(false, training_of(steps), 5);
  check_bits(train(true, training_of(steps), 5), whole);
  for (const char* slot : {"second_moment", "accumulated"})
    CHECK(whole.at(std::string("g.w/g.adam.") + slot).dtype() == DType::f64);

  const auto go_on = [&](bool as_graph, const char* from, const char* to, int rounds) {
    InMode mode(as_graph, DType::f32, Seed{2});
    declare_parts(mode.parameters);
    std::vector<InMode::Function> all;
    for (const Step& step : steps)
      all.push_back(mode.function([&] { return step(mode.parameters); }));
    mode.load(folder.path(from));
    for (int i = 0; i < rounds; ++i)
      for (const InMode::Function& step : all) step({});
    mode.save(folder.path(to));
    return mode.values();
  };
  {
    const Parameters start(Device::cpu(), Seed{1});
    declare_parts(start);
    start.save(folder.path("start"));
  }
  for (const bool first : {false, true}) {
    go_on(first, "start", "two", 2);
    for (const bool then : {false, true}) check_bits(go_on(then, "two", "five", 3), whole);
  }
}

TEST_CASE("the graph of an optimizer grows in step with the parameters", "[optim][scope]") {
  const auto nodes = [](int count) {
    Graph graph;
    const Parameters p(graph, Seed{1});
    Tensor loss;
    for (int i = 0; i < count; ++i) {
      const Tensor term =
          sum(p.scope("layer" + std::to_string(i)).declare("w", {2}, initializers::zeros()));
      loss = loss.defined() ? loss + term : term;
    }
    optim::Adam().minimize(loss, p);
    CHECK(p.slots().size() == 2 * static_cast<std::size_t>(count) + 1);
    return graph.size();
  };
  const std::size_t at_1000 = nodes(1'000), at_10000 = nodes(10'000);
  CHECK(at_10000 < 10 * at_1000 + 10);
}

}  // namespace ebb::tests
