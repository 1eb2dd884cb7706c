// Programs that once gave wrong results, as they were found.
#include <functional>

#include "ebb/allocator/error.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/device/host_kernel.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/graph/models.h"
#include "ebb/tests/in_mode.h"

namespace ebb::tests {
namespace {

// Returns the parameters w = 2 and v = 3 after one step in either mode.
std::vector<float> after(const std::function<Tensor(const Parameters&)>& step, bool as_graph) {
  InMode mode(as_graph);
  mode.parameters.declare("w", {1}, initializers::constant(2));
  mode.parameters.declare("v", {1}, initializers::constant(3));
  mode.function([&] { return step(mode.parameters); })({});
  return {mode["w"].item<float>(), mode["v"].item<float>()};
}

// Identity whose gradient rule returns x: the gradient by x is an older version of x.
const OpDef own_op{.name = "own",
                   .infer = [](Inference& i) { i.output(i.inputs[0].dtype, i.inputs[0].shape); },
                   .gradient = [](const GradientContext& g) -> Tensors { return {g.x(0)}; },
                   .cpu = {copy_first},
                   .cuda = copied<copy_first>};

optim::Sgd sgd() { return optim::Sgd({.learning_rate = 0.1}); }

}  // namespace

TEST_CASE("a gradient that is an older version of a variable is copied before its update") {
  Graph graph;
  const Parameters p(graph);
  const Tensor w = p.declare("w", {2}, initializers::constant(2));
  const Tensor dw = gradients(sum(apply_one(own_op, {w}, {}, {})), {w})[0];
  const Tensor part = slice(dw, 0, 1);
  const Tensor up = assign(w, Tensor::full({2}, 7));
  for (const bool passes : {false, true}) {
    Session session(graph, {.passes = passes});
    session.initialize();
    const auto all = session.run({dw, part * 1, up});
    CHECK(all[0].to_vector<float>() == std::vector<float>{2, 2});
    CHECK(all[1].to_vector<float>() == std::vector<float>{2});
    CHECK(all[2].to_vector<float>() == std::vector<float>{7, 7});
  }
}

TEST_CASE("what is computed under NoGrad is a constant in a graph too") {
  const auto step = [](const Parameters& p) {
    Tensor t;
    {
      const NoGrad no_grad;
      t = p["w"] * 3;
    }
    return sgd().minimize(sum(t * p["w"]), p);
  };
  CHECK(after(step, true) == after(step, false));
  CHECK(after(step, true)[0] == Approx(2 - 0.1 * 6));
}

TEST_CASE("gradients without create_graph are constants in a graph too, with it they are not") {
  for (const bool create : {false, true}) {
    const auto step = [create](const Parameters& p) {
      const Tensor w = p["w"];
      const Tensor inner = gradients(sum(square(w)), {w}, {.create_graph = create})[0];
      return sgd().minimize(sum(square(w - 0.1 * inner)), p);
    };
    CHECK(after(step, true) == after(step, false));
    CHECK(after(step, true)[0] == Approx(2 - 0.1 * (create ? 2 * 1.6 * 0.8 : 2 * 1.6)));
  }
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {2});
  const Tensor gradient = gradients(sum(square(x)), {x})[0];
  CHECK_ERROR(gradients(sum(gradient), {x}), Error,
              "of a gradient made without {.create_graph = true}");
}

TEST_CASE("minimize returns the loss of before the step, also where that is a parameter itself") {
  using Minimize = Tensor (*)(const Tensor& loss, const Parameters&);
  const Minimize ways[] = {
      [](const Tensor& loss, const Parameters& p) { return sgd().minimize(loss, p); },
      [](const Tensor& loss, const Parameters& p) {
        return optim::minimize(loss, {{p, sgd()}});
      },
      [](const Tensor& loss, const Parameters& p) {
        return optim::Accumulator(sgd(), {.samples = 1})
            .minimize(loss, p, Tensor::full({}, 1, DType::i64));
      }};
  for (const bool as_graph : {false, true})
    for (const Minimize minimize : ways) {
      InMode mode(as_graph);
      const Tensor w = mode.parameters.declare("w", {}, initializers::constant(3));
      const auto step = mode.function([&] { return minimize(w, mode.parameters); });
      CHECK(step({})[0].item<float>() == 3);
      CHECK(mode["w"].item<float>() == Approx(2.9));
    }
}

TEST_CASE("the result of minimize has no history in a graph, as eagerly") {
  const auto step = [](const Parameters& p) {
    const Tensor l = optim::Sgd({.learning_rate = 0}).minimize(sum(p["w"] * p["v"]), p);
    return sgd().minimize(sum(l * p["v"]), p);
  };
  CHECK(after(step, true) == after(step, false));
}

TEST_CASE("a graph refuses a gradient through an update of a captured constant, and says why") {
  Graph graph;
  const Parameters p(graph);
  const Tensor w = p.declare("w", {1}, initializers::constant(2));
  const Tensor total = add_assign(Tensor::zeros({1}), square(w));
  CHECK_ERROR(gradients(sum(total) + sum(w), {w}), Error, "begin with fill_like()");
  const Tensor fine = fill_like(w, 0);
  add_assign(fine, square(w));
  Session session(graph);
  session.initialize(p);
  CHECK(session.run(gradients(sum(fine) + sum(w), {w})[0]).item<float>() == 5);
  // A captured constant may take updates that no gradient goes through, as running statistics do.
  const Tensor statistics = Tensor::zeros({1});
  const Tensor kept = add_assign(statistics, square(w).detach());
  session.run({kept, gradients(sum(square(w) * statistics), {w})[0]});
  CHECK(statistics.item<float>() == 4);
}

TEST_CASE("an update in place of an empty value does nothing") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 3});
  const Tensor y = x * 2;
  add_assign(y, x);
  for (const bool passes : {false, true}) {
    Session session(graph, {.passes = passes});
    CHECK(session.run(sum(y), {{x, Tensor::zeros({0, 3})}}).item<float>() == 0);
    CHECK(session.run(sum(y), {{x, Tensor::full({1, 3}, 1)}}).item<float>() == 9);
  }
}

TEST_CASE("an update whose source overlaps its target in part is refused in both modes") {
  const Tensor a = Tensor::from({1.f, 2.f, 3.f, 4.f});
  CHECK_ERROR(add_assign(slice(a, 1, 4), slice(a, 0, 3)), Error, "copy() it first");
  CHECK_ERROR(assign(a, reshape(slice(reshape(a, {4, 1}), 0, 4), {4}) * 1 + a).detach().backward(),
              Error, "no history");  // all of it, or a copy, is accepted
  add_assign(a, a);
  CHECK(a.item<float>({3}) == 16);
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {4});
  const Tensor y = x * 1;
  const Tensor up = assign(slice(y, 0, 3), slice(y, 1, 4));
  Session session(graph);
  CHECK_ERROR(session.run(up, {{x, a}}), Error, "copy() it first (");
}

TEST_CASE("a refused step leaves nothing allocated, and an idle arena gives way to slots") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 1024});
  const Parameters p(graph, Seed{1});
  const models::Dense dense(p.scope("d"), 1024, 1024);
  const Tensor loss = mean(square(dense(x))), train = optim::Adam().minimize(loss, p);
  const Tensor big = Tensor::full({8192, 1024}, 1), small = Tensor::full({64, 1024}, 1);
  const std::size_t limit = graph.plan({loss}, {{x, {8192, 1024}}}, Device::cpu()).reserved_bytes;
  Session session(graph, {.memory_limit = limit});
  session.initialize(p.scope("d"));
  const std::size_t held = session.stats().allocated.current;
  CHECK_THROWS_AS(session.run(train, {{x, big}}), OutOfMemory);
  CHECK(session.stats().allocated.current == held);
  CHECK(session.memory().optimizer_state_bytes == 0);
  CHECK_NOTHROW(session.run(loss, {{x, big}}));
  CHECK_NOTHROW(session.run(train, {{x, small}}));
  CHECK_THROWS_AS(session.run(train, {{x, big}}), OutOfMemory);
  CHECK_NOTHROW(session.run(train, {{x, small}}));
}

TEST_CASE("a prepared step means what its fetch means now") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {});
  const Tensor y = x * 2, one = Tensor::full({}, 1);
  Session session(graph);
  auto step = session.prepare(y, {x});
  CHECK(step(one).item<float>() == 2);
  CHECK(session.run(y, {{x, one}}).item<float>() == 2);
  add_assign(y, 100);
  CHECK(step(one).item<float>() == 102);
  CHECK(session.run(y, {{x, one}}).item<float>() == 102);
}

TEST_CASE("saving changes nothing of what a session draws") {
  const TemporaryFolder folder;
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1});
  const Parameters p(graph);
  const Tensor w = p.declare("w", {1}, initializers::constant(1));
  const Tensor evaluate = sum(x * w), train = dropout(x * w, 0.5, Phase::training);
  const Tensor data = Tensor::full({64}, 1);
  const auto draw = [&](bool saves) {
    Session session(graph, {.seed = Seed{4}});
    session.initialize(p);
    if (saves) session.save(folder.path("a.safetensors"));
    session.run(evaluate, {{x, data}});
    return session.run(train, {{x, data}}).to_vector<float>();
  };
  CHECK(draw(true) == draw(false));
}

TEST_CASE("restoring a session restores the thread's generator, as loading parameters does") {
  const TemporaryFolder folder;
  Graph graph;
  const Parameters p(graph);
  p.declare("w", {1}, initializers::constant(1));
  Session session(graph);
  session.initialize(p);
  set_seed(Seed{5});
  session.save(folder.path("a.safetensors"));
  const auto first = normal({8}).to_vector<float>();
  CHECK(normal({8}).to_vector<float>() != first);
  session.restore(folder.path("a.safetensors"), p);
  CHECK(normal({8}).to_vector<float>() != first);  // restoring a part leaves the generator alone
  session.restore(folder.path("a.safetensors"));
  CHECK(normal({8}).to_vector<float>() == first);
}

TEST_CASE("a graph that only forecasts holds no sequence, however long") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, -1, 16});
  const Parameters p(graph, Seed{1});
  const models::Forecaster model(p, 16, {.hidden = 32, .layers = 2});
  const Tensor out = model(x);
  const auto arena = [&](std::int64_t time) {
    return graph.plan({out}, {{x, {4, time, 16}}}, simulated_host()).arena_bytes;
  };
  CHECK(arena(2048) < arena(512) + 4 * 1536 * 32 * 4 / 2);
  // The values are those of the whole sequence's last step, computed eagerly.
  const Parameters eager(Device::cpu(), Seed{1});
  const models::Lstm lstm(eager.scope("lstm"), 16, {.hidden = 32, .layers = 2});
  const models::Dense head(eager.scope("head"), 32, 1);
  const Tensor data = uniform({4, 50, 16});
  Session session(graph);
  session.initialize(p);
  CHECK(session.run(out, {{x, data}}).to_vector<float>() ==
        head(last_step(lstm(data).sequence)).to_vector<float>());
}

TEST_CASE("recompute trains all that its function reads, however many they are") {
  for (const int count : {32, 65, 200}) {
    const Parameters p(Device::cpu());
    for (int i = 0; i < count; ++i) p.declare("w" + std::to_string(i), {1}, initializers::zeros());
    const auto function = [p](const Tensor& x) {
      Tensor total = x * 1;
      for (const Parameters::Entry& entry : p.entries()) total = total + entry.tensor * x;
      return total;
    };
    sgd().minimize(sum(recompute(function, Tensor::from({1.f}))), p);
    for (const Parameters::Entry& entry : p.entries())
      CHECK(entry.tensor.item<float>() == Approx(-0.1));
  }
}

TEST_CASE(
    "an operator through its composed form counts a tensor given twice twice, not four times") {
  // x (1 - x^2), tanh's derivative by its result with x for both inputs. Its own is 1 - 3 x^2.
  const auto program = [](const Tensor& x) {
    const Input both[] = {x, x};
    const Tensor y =
        apply(activation_backward_op, both, ActivationAttributes{Activation::tanh}, {})[0];
    return gradients(sum(y), {x})[0];
  };
  const Tensor x = Tensor::from({0.5f, -2.f}).with_grad();
  CHECK(program(x).to_vector<float>() == std::vector<float>{0.25f, -11.f});
  Graph graph;
  const Parameters p(graph);
  const Tensor w = p.declare("w", {1}, initializers::constant(0.5));
  Session session(graph);
  session.initialize(p);
  CHECK(session.run(program(w)).item<float>() == 0.25f);
}

TEST_CASE("what would do nothing for want of parameters says so") {
  const TemporaryFolder folder;
  const std::string file = folder.path("a.safetensors");
  const Parameters p(Device::cpu());
  CHECK_ERROR(p.save(file), Error, "there are no parameters");
  p.scope("encoder").declare("w", {1}, initializers::zeros());
  p.save(file);
  CHECK_ERROR(p.scope("encodr").load(file), Error, "begin with \"encodr.\"");
  CHECK_ERROR(Parameters(Device::cpu()).load(file), Error, "by making the model");
  Graph graph;
  const Parameters q(graph);
  q.scope("encoder").declare("w", {1}, initializers::zeros());
  Session session(graph);
  CHECK_ERROR(session.initialize(q.scope("w")), Error, "begin with \"w.\"");
  CHECK_ERROR(session.restore(file, q.scope("encodr")), Error, "[restore] there are no parameters");
  CHECK_ERROR(gradients(sum(graph.placeholder("x", DType::f32, {1})),
                        {Graph().placeholder("y", DType::f32, {1})}),
              Error, "two graphs");
}

TEST_CASE(
    "recompute of a function that only captures a graph's tensors is a region of that graph") {
  Graph graph;
  const Parameters p(graph);
  const Tensor w = p.declare("w", {2}, initializers::constant(2));
  const Tensor x = Tensor::from({1.f, 1.f});
  const Tensor y = sum(recompute([&](const Tensor& t) { return t * w * w; }, x));
  const Tensor none = sum(recompute([&](const Tensors&) -> Tensors { return {w * w * w}; }, {})[0]);
  const Tensor dy = gradients(y, {w})[0], dnone = gradients(none, {w})[0];
  Session session(graph);
  session.initialize();
  CHECK(session.run(y).item<float>() == 8);
  CHECK(session.run(dy).to_vector<float>() == std::vector<float>{4, 4});
  CHECK(session.run(dnone).to_vector<float>() == std::vector<float>{12, 12});
  const Tensor leaf = Tensor::from({1.f, 1.f}).with_grad();
  CHECK_THROWS_AS(recompute([&](const Tensor& t) { return (t * leaf) * w; }, x), Error);
  CHECK(session.run(y).item<float>() == 8);
}

TEST_CASE("mse broadcasts nothing that is fed, and its errors bear its name") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 3});
  const Tensor y = graph.placeholder("y", DType::f32, {-1, 3});
  const Tensor loss = mse(x, y);
  Session session(graph);
  CHECK(session.run(loss, {{x, Tensor::full({2, 3}, 1)}, {y, Tensor::full({2, 3}, 3)}})
            .item<float>() == 4);
  for (const std::int64_t rows : {1, 5})
    CHECK_THROWS_WITH(
        session.run(loss, {{x, Tensor::full({6, 3}, 1)}, {y, Tensor::full({rows, 3}, 1)}}),
        Catch::Contains("[mse]"));
  CHECK_THROWS_WITH(mse(Tensor::full({2}, 1), Tensor::full({2}, 1, DType::f64)),
                    Catch::Contains("[mse]"));
}

TEST_CASE(
    "a gradient of one's own that is fed with another shape than its parameter's is refused") {
  Graph graph;
  const Parameters p(graph, Seed{1});
  p.declare("w", {4, 3}, initializers::zeros());
  const Tensor given = graph.placeholder("g", DType::f32, {-1, 3});
  const Tensor step = optim::Sgd({.learning_rate = 1}).apply({given}, p);
  const Tensor never = graph.placeholder("never", DType::f32, {-1, 2});
  CHECK_THROWS_AS(optim::Sgd({.learning_rate = 1}).apply({never}, p), Error);
  Session session(graph);
  session.initialize(p);
  CHECK_THROWS_AS(session.run(step, {{given, Tensor::full({1, 3}, 2)}}), ShapeError);
  session.run(step, {{given, Tensor::full({4, 3}, 2)}});
  CHECK(session.value(p["w"]).to_vector<float>() == std::vector<float>(12, -2));
}

TEST_CASE("state that is updated with something that has a history gets none") {
  const Parameters p(Device::cpu());
  const Tensor w = p.declare("w", {2}, initializers::constant(1));
  const Tensor mean = p.state("mean", {2}, initializers::zeros());
  const Tensor after = add_assign(mean, w * 2);
  CHECK_FALSE(after.requires_grad());
  CHECK_FALSE(p["mean"].requires_grad());
}

TEST_CASE("what is computed from a part does not hold the memory of the whole") {
  const Tensor a = Tensor::full({256, 1024}, 1);
  const auto now = [] { return memory::stats(Device::cpu()).allocated.current; };
  const auto before = now();
  const Tensor row = tanh(slice(a * 2, 0, 1));
  CHECK(now() - before < 100000);
}

}  // namespace ebb::tests
