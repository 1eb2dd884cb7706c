// Steps that a budget cuts into micro-batches: MEMORY.md, rows 14, 15 and 21.
#include <functional>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/host_kernel.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/properties/check_plan.h"

namespace ebb::tests {
namespace {

// A model on x and y, whose results are fetched, the loss first.
struct Model {
  const char* name;
  Spec x, y;  // of one row
  std::function<Tensors(const Tensor& x, const Tensor& y, const Parameters&)> train;
};

Tensor dense(const Parameters& params, const std::string& name, std::int64_t in, std::int64_t out,
             const Tensor& x, Activation activation = Activation::none) {
  return models::Dense(params.scope(name), in, out, activation)(x);
}

// A block of a language model on tokens [batch, time], with its loss.
Tensor language_model(const Tensor& tokens, const Tensor& next, const Parameters& params) {
  constexpr std::int64_t kTime = 12, kWidth = 16, kTokens = 30, kHeads = 2;
  const Tensor table = params.declare("table", {kTokens, kWidth}, initializers::normal(0, 0.1)),
               places = params.declare("places", {kTime, kWidth}, initializers::normal(0, 0.1)),
               scale = params.declare("scale", {kWidth}, initializers::ones()),
               shift = params.declare("shift", {kWidth}, initializers::zeros());
  Tensor x = embedding(table, tokens) + places;
  const Tensor all = dense(params, "qkv", kWidth, 3 * kWidth, layer_norm(x, scale, shift));
  const auto [q, k, v] = split<3>(all, {kWidth, kWidth, kWidth}, -1);
  const auto heads = [](const Tensor& of) {
    return permute(unflatten(of, -1, {kHeads, kWidth / kHeads}), {0, 2, 1, 3});
  };
  const Tensor mixed = scaled_dot_product_attention(heads(q), heads(k), heads(v), {.causal = true});
  x = x + reshape(permute(mixed, {0, 2, 1, 3}), {-1, kTime, kWidth});
  x = dropout(x, 0.2, Phase::training);
  x = x + dense(params, "down", 4 * kWidth, kWidth,
                dense(params, "up", kWidth, 4 * kWidth, x, Activation::gelu));
  return softmax_cross_entropy(matmul(x, table, {.transpose_b = true}), next);
}

const std::vector<Model>& models() {
  static const optim::Adam adam({.learning_rate = 1e-2});
  static const std::vector<Model> all = {
      {"mlp, with its predictions",
       {DType::f32, {20}},
       {DType::i32, {}},
       [](const Tensor& x, const Tensor& y, const Parameters& params) -> Tensors {
         Tensor h = x;
         for (int i = 0; i < 3; ++i)
           h = dense(params, "hidden" + std::to_string(i), 20, 20, h, Activation::relu);
         const Tensor scores = dense(params, "out", 20, 10, h);
         return {adam.minimize(softmax_cross_entropy(scores, y), params), softmax(scores)};
       }},
      {"lstm",
       {DType::f32, {9, 4}},
       {DType::f32, {1}},
       [](const Tensor& x, const Tensor& y, const Parameters& params) -> Tensors {
         const models::Lstm lstm(params.scope("lstm"), 4, {.hidden = 12, .layers = 2});
         const Tensor last = last_step(lstm(x, Phase::training).sequence);
         return {adam.minimize(mse(dense(params, "head", 12, 1, last), y), params)};
       }},
      {"language model",
       {DType::i32, {12}},
       {DType::i32, {12}},
       [](const Tensor& x, const Tensor& y, const Parameters& params) -> Tensors {
         return {adam.minimize(language_model(x, y, params), params)};
       }},
      {"sums of squares, and of integers",
       {DType::f32, {30}},
       {DType::i32, {}},
       [](const Tensor& x, const Tensor& y, const Parameters& params) -> Tensors {
         const Tensor z = dense(params, "out", 30, 30, dense(params, "in", 30, 30, x));
         const Tensor loss = sum(square(z)) * 1e-3;
         const Tensor penalty = sum(square(params["out.weight"]));
         return {adam.minimize(loss + penalty, params), sqrt(loss), sum(y)};
       }},
      {"a gradient without its loss",
       {DType::f32, {3}},
       {DType::f32, {200}},
       [](const Tensor& x, const Tensor& y, const Parameters& params) -> Tensors {
         const Tensor z = tanh(dense(params, "out", 3, 200, x)), weight = params["out.weight"];
         return gradients(mse(z, y) + sum(square(weight)) * 1e-3, {weight});
       }}};
  return all;
}

Shape with_rows(std::int64_t rows, const Shape& row) {
  Shape shape{rows};
  for (const std::int64_t size : row.dims()) shape.push_back(size);
  return shape;
}

Tensor sample(const Spec& row, std::int64_t rows, const Device& device) {
  const Shape shape = with_rows(rows, row.shape);
  const Tensor numbers =
      arange(static_cast<double>(shape.elements()), {.dtype = DType::f32, .device = device});
  if (row.dtype == DType::i32) return reshape(cast(floor(sin(numbers) * 5 + 5), row.dtype), shape);
  return reshape(sin(numbers), shape);
}

std::vector<double> all_values(const Tensors& tensors) {
  std::vector<double> all;
  for (const Tensor& tensor : tensors)
    for (const double value : cast(tensor, DType::f64).to_vector<double>()) all.push_back(value);
  return all;
}

}  // namespace

TEST_CASE(
    "a step in micro-batches computes the same, keeps to its budget and takes what is planned",
    "[row14][row15]") {
  EBB_SKIP_WITH_LARGE_PAGES();
  const Device device = own_test_device();
  for (const Model& model : models())
    for (const std::int64_t rows : {61, 16}) {
      Graph graph;
      const Tensor x = graph.placeholder("x", model.x.dtype, with_rows(-1, model.x.shape)),
                   y = graph.placeholder("y", model.y.dtype, with_rows(-1, model.y.shape));
      const Parameters params(graph, Seed{1});
      const Tensors fetches = model.train(x, y, params);
      const Feeds feeds = {{x, sample(model.x, rows, device)}, {y, sample(model.y, rows, device)}};
      const FedShapes shapes = {{x, feeds[0].value.shape()}, {y, feeds[1].value.shape()}};
      const std::size_t most = graph.plan(fetches, shapes, device).reserved_bytes,
                        least = graph.least_budget(fetches, shapes, device);
      std::vector<double> whole;
      std::size_t cuts = 0;
      for (const std::size_t budget : {most, least + (most - least) / 2, least}) {
        const memory::Plan plan = graph.plan(fetches, shapes, device, {.budget = budget});
        Session session(graph, {.device = device, .budget = budget, .seed = Seed{2}});
        session.initialize();
        Tensors results;
        for (int step = 0; step < 3; ++step)
          for (const Tensor& result : session.run(fetches, feeds)) results.push_back(result);
        INFO(model.name << ", " << rows << " rows, budget " << budget << " of " << most << ": "
                        << plan.micro_batches << " micro-batches");
        check_plan(plan, session.stats());
        CHECK(session.stats().reserved.peak <= budget);
        CHECK(plan.micro_batch_rows == (plan.micro_batches == 1
                                            ? 0
                                            : (rows + std::int64_t(plan.micro_batches) - 1) /
                                                  std::int64_t(plan.micro_batches)));
        if (whole.empty()) whole = all_values(results);
        CHECK(distance(whole, all_values(results)) < 2e-5);
        cuts += plan.micro_batches > 1;
      }
      CHECK((cuts > 0 || rows < 61));
      CHECK_ERROR(graph.plan(fetches, shapes, device, {.budget = least - 1}), Error,
                  "(" + std::to_string(least) + " bytes)");
    }
}

TEST_CASE("micro-batches add up 16-bit numbers as a sum does", "[row14]") {
  EBB_SKIP_WITH_LARGE_PAGES();
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::bf16, {-1, 4096}),
               total = sum(exp(x) * (softmax(x) * 4096));
  const FedShapes shapes = {{x, {700, 4096}}};
  const std::size_t least = graph.least_budget({total}, shapes, Device::cpu());
  CHECK(graph.plan({total}, shapes, Device::cpu(), {.budget = least}).micro_batches > 500);
  Session session(graph, {.budget = least});
  const Tensor fed = Tensor::zeros({700, 4096}, DType::bf16, Device::cpu());
  CHECK(session.run(total, {{x, fed}}).item<float>() == 700 * 4096);
}

TEST_CASE("what micro-batches would change is not cut, and the Error says why") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 8}),
               y = graph.placeholder("y", DType::i32, {-1}),
               fixed = graph.placeholder("fixed", DType::f32, {40, 8});
  const Parameters params(graph, Seed{1});
  const Tensor z = dense(params, "z", 8, 8, x),
               state = params.declare("state", {40, 8}, initializers::zeros()),
               late = sum(state, {.axis = 0});
  const models::BatchNorm norm(params.scope("norm"), 8);
  static const OpDef own{.name = "own",
                         .infer = [](Inference& i) { i.output(DType::f32, i.inputs[0].shape); },
                         .cpu = {always_fails},
                         .cuda = copied<always_fails>};
  const auto minimized = [&](const Tensor& loss) { return optim::Sgd().minimize(loss, params); };
  const struct {
    Tensor fetch;
    const char* reason;
    std::int64_t labels = 40;
  } cases[] = {
      {minimized(mean(square(norm(z, Phase::training)))), "takes its statistics from the whole"},
      {minimized(sqrt(mean(square(z)))), "reads a value of the whole batch beside rows of it"},
      {minimized(mean(z - mean(z, {.axis = 0}))), "reads a value of the whole batch"},
      {minimized(softmax_cross_entropy(z, y, {.ignored_label = 3})), "reads a value of the whole"},
      {minimized(mean(max(z, {.axis = 0}))), "mixes the rows of a batch"},
      {mean(softmax(z, 0)), "softmax ("},
      {mean(z * normal_like(z, 0, 1)), "draws numbers by their position"},
      {mean(assign(state, z)), "keeps or changes what depends on the rows"},
      {mean(add_assign(sum(z, {.axis = 0}), 1)), "add_assign ("},
      {mean(z * (add_assign(late, mean(z, {.axis = 0})), late)), "multiply ("},
      {mean(apply_one(own, {z}, {}, CallSite::here())), "it is not known how own ("},
      {mean(z) + mean(cast(y, DType::f32)), "has 40 rows and placeholder 'y'", 30},
      {mean(fixed), "no feed has an open leading axis"}};
  for (const auto& each : cases) {
    INFO(each.reason);
    const FedShapes shapes = {{x, {40, 8}}, {y, {each.labels}}, {fixed, {40, 8}}};
    CHECK_ERROR(graph.plan({each.fetch}, shapes, Device::cpu(), {.budget = 1}), Error, each.reason);
  }
}

TEST_CASE("a label out of range is an Error that says how a step in micro-batches counts rows") {
  if (!on_host()) return;  // a GPU does not read labels
  EBB_SKIP_WITH_LARGE_PAGES();
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 20}),
               y = graph.placeholder("y", DType::i32, {-1});
  const Parameters params(graph, Seed{1});
  const Tensor loss = models()[0].train(x, y, params)[0];
  const std::size_t least = graph.least_budget({loss}, {{x, {256, 20}}, {y, {256}}}, Device::cpu());
  Session session(graph, {.budget = least});
  session.initialize();
  const Tensor before = session.value(params["out.weight"]);
  CHECK_ERROR(session.run(loss, {{x, zeros({256, 20})}, {y, full({256}, 10, DType::i32)}}), Error,
              ", with rows counted from 0 in each micro-batch, in a run");
  CHECK(session.value(params["out.weight"]).to_vector<float>() == before.to_vector<float>());
}

TEST_CASE("a compiled step cuts the arguments that are named for the batch", "[row21]") {
  EBB_SKIP_WITH_LARGE_PAGES();
  const Device device = own_test_device();
  std::size_t cuts = 0;
  for (const Model& model : models()) {
    const Tensor x = sample(model.x, 256, device), y = sample(model.y, 256, device);
    const auto trained = [&](const CompileOptions& options) {
      const Parameters params(device, Seed{1});
      set_seed(Seed{3});
      const auto step = compile(
          [&](const Tensor& a, const Tensor& b) { return model.train(a, b, params); }, options);
      Tensors results;
      for (int i = 0; i < 3; ++i)
        for (const Tensor& result : step(x, y)) results.push_back(result);
      return std::tuple{all_values(results), step.plan(x, y), step.stats().reserved.peak};
    };
    INFO(model.name);
    const auto [whole, plan, peak] = trained({});
    // On a GPU the workspace of an LSTM does not become smaller with the batch, 8 MiB a layer, for
    // which other models need no micro-batches.
    const bool is_lstm = std::string(model.name) == "lstm";
    const std::size_t budget = plan.reserved_bytes * (on_host() ? 6 : is_lstm ? 11 : 10) / 12;
    const auto [values, fitted, fitted_peak] = trained({.budget = budget, .batch = {0, 1}});
    cuts += fitted.micro_batches > 1;
    CHECK(fitted_peak == fitted.reserved_bytes);
    CHECK(fitted_peak <= budget);
    CHECK(distance(whole, values) < 2e-5);
    CHECK_ERROR(trained({.budget = 1}), Error, "(CompileOptions::batch)");
    CHECK_ERROR(trained({.batch = {2}}), Error, "names tensor 2, and there are 2");
  }
  CHECK(cuts >= (on_host() ? models().size() : 1));
}

}  // namespace ebb::tests
