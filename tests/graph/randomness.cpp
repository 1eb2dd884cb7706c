// No two draws of a program share numbers: in eager and in graphs, between sessions, between runs.

#include <algorithm>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"

using namespace ebb;

namespace {

using Floats = std::vector<float>;

// Which elements of a dropped-out tensor without zeros were kept.
std::vector<bool> kept(const Tensor& dropped) {
  std::vector<bool> mask;
  for (const float value : dropped.to_vector<float>()) mask.push_back(value != 0);
  return mask;
}

// An LSTM of one unit a layer. Its last output shows which of its inputs was dropped: a layer
// returns tanh(tanh(input)) of the step alone, the first one of a constant.
struct Stack {
  explicit Stack(std::size_t layers) {
    for (std::size_t i = 0; i < layers; ++i)
      weights.push_back({Tensor::from({{0.f, 0.f, 1.f, 0.f}}), Tensor::zeros({1, 4}),
                         Tensor::from({100.f, -100.f, 0.f, 100.f})});
  }
  Tensor operator()(const Tensor& x) const {
    return lstm(x, weights, {.dropout = 0.5, .phase = Phase::training}).sequence;
  }
  std::vector<LstmWeights> weights;
};

// A graph that drops out.
struct Dropping {
  std::vector<bool> mask(Session& session) const {
    return kept(session.run(y, {{x, Tensor::full({16, 8}, 1)}}));
  }
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 8});
  const Tensor w = Parameters(graph).declare("w", {8, 8}, initializers::normal(0, 0.3));
  const Tensor y = dropout(x, 0.5, Phase::training);
};

}  // namespace

TEST_CASE("the masks between an lstm's layers are not those of the next draws") {
  const Tensor x = Tensor::full({4, 64, 1}, 1), ones = Tensor::full({4, 64, 1}, 1);
  set_seed(Seed{3});
  const auto between = kept(Stack(2)(x));
  CHECK(std::count(between.begin(), between.end(), true) > 80);
  CHECK(std::count(between.begin(), between.end(), false) > 80);
  for (int i = 0; i < 8; ++i) CHECK(kept(dropout(ones, 0.5, Phase::training)) != between);
  set_seed(Seed{3});
  CHECK(kept(dropout(ones, 0.5, Phase::training)) != between);

  Graph graph;
  const Tensor in = graph.placeholder("in", DType::f32, {4, 64, 1});
  Tensors masks{Stack(2)(in)};
  for (int i = 0; i < 4; ++i) masks.push_back(dropout(in, 0.5, Phase::training));
  Session session(graph);
  const Tensors values = session.run(masks, {{in, ones}});
  for (std::size_t i = 1; i < values.size(); ++i) CHECK(kept(values[i]) != kept(values[0]));
}

TEST_CASE("two layers of an lstm have masks of their own") {
  const Tensor x = Tensor::full({4, 64, 1}, 1);
  set_seed(Seed{3});
  const auto two = kept(Stack(2)(x));
  set_seed(Seed{3});
  const auto three = kept(Stack(3)(x));
  // An element is missing after the third layer because of its own mask, or because the second
  // layer's mask dropped it already.
  std::size_t by_the_third_alone = 0;
  for (std::size_t i = 0; i < two.size(); ++i) {
    CHECK((two[i] || !three[i]));
    by_the_third_alone += two[i] && !three[i] ? 1 : 0;
  }
  CHECK(by_the_third_alone > 30);
}

TEST_CASE("the runs of a graph repeat no eager draw of the same seed") {
  set_seed(Seed{9});
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {256});
  const Tensor y = dropout(x, 0.5, Phase::training);
  const Tensor ones = Tensor::full({256}, 1);
  std::vector<std::vector<bool>> masks;
  for (const std::optional<Seed> seed : {std::optional<Seed>(), std::optional(Seed{9})}) {
    Session session(graph, {.seed = seed});
    for (int run = 0; run < 3; ++run) masks.push_back(kept(session.run(y, {{x, ones}})));
  }
  set_seed(Seed{9});
  for (int i = 0; i < 16; ++i) masks.push_back(kept(dropout(ones, 0.5, Phase::training)));
  std::sort(masks.begin(), masks.end());
  CHECK(std::adjacent_find(masks.begin(), masks.end()) == masks.end());
}

TEST_CASE(
    "a graph's dropout draws by the session's key, the run and the number of its draw's node") {
  const Dropping graph;
  Session session(graph.graph, {.seed = Seed{4}});
  const auto key = static_cast<std::int64_t>(detail::session_key(Seed{4}));
  for (std::int64_t run = 0; run < 3; ++run) {
    const Tensor draw = Tensor::from({key, run << 32 | 3});  // after x, w and the random state
    const Tensor ones = Tensor::full({16, 8}, 1);
    CHECK(graph.mask(session) ==
          kept(apply_one(dropout_op, {ones, draw}, RandomAttributes{.a = 0.5}, {})));
  }
}

TEST_CASE("sessions of one graph draw apart unless they are given one seed") {
  const Dropping training;
  Session one(training.graph), two(training.graph);
  CHECK(training.mask(one) != training.mask(two));
  Session three(training.graph, {.seed = Seed{4}}), four(training.graph, {.seed = Seed{4}}),
      five(training.graph, {.seed = Seed{5}});
  const auto mask = training.mask(three);
  CHECK(training.mask(four) == mask);
  CHECK(training.mask(five) != mask);
  // Without a seed of its own, a session takes it from the generator of the thread that makes it.
  set_seed(Seed{8});
  Session six(training.graph);
  set_seed(Seed{8});
  Session seven(training.graph);
  CHECK(training.mask(six) == training.mask(seven));
}

TEST_CASE("a session that is initialised anew, or restored without random state, draws on") {
  const ebb::tests::TemporaryFolder folder;
  const Dropping training;
  Session session(training.graph);
  session.initialize();
  const auto first = training.mask(session);
  session.initialize();
  CHECK(training.mask(session) != first);

  const Parameters eager(Device::cpu());
  eager.declare("w", {8, 8}, initializers::normal(0, 0.3));
  eager.save(folder.path("no_random_state.safetensors"));
  Session one(training.graph, {.seed = Seed{4}}), two(training.graph, {.seed = Seed{4}});
  const auto run_0 = training.mask(one);
  one.restore(folder.path("no_random_state.safetensors"));
  CHECK(training.mask(one) != run_0);
  training.mask(two);
  training.mask(two);
  CHECK(training.mask(two) == training.mask(one));  // the third mask of each session
}

TEST_CASE("random operators of a graph draw in each run, and a captured result is a constant") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 3});
  const Tensors fetches{normal(graph, {5}, {.mean = 4}),
                        uniform(graph, {5}, {.low = 2, .high = 3}),
                        bernoulli(graph, {5}, {.dtype = DType::f64}),
                        normal_like(x),
                        uniform_like(x, -2, -1),
                        bernoulli_like(x, 0.25)};
  const Tensor captured = normal({5}) + 0 * sum(x);
  Session session(graph);
  const Feeds feeds{{x, Tensor::zeros({200, 3})}};
  const Tensors first = session.run(fetches, feeds), second = session.run(fetches, feeds);
  CHECK(first[0].to_vector<float>() != second[0].to_vector<float>());
  CHECK(first[1].to_vector<float>() != second[1].to_vector<float>());
  CHECK(first[2].dtype() == DType::f64);
  for (std::size_t i = 3; i < 6; ++i) {
    CHECK(first[i].shape() == Shape{200, 3});
    CHECK(first[i].to_vector<float>() != second[i].to_vector<float>());
  }
  for (const float value : first[1].to_vector<float>()) CHECK((value >= 2 && value < 3));
  for (const float value : first[4].to_vector<float>()) CHECK((value >= -2 && value < -1));
  const Floats ones = first[5].to_vector<float>();
  CHECK(std::abs(std::count(ones.begin(), ones.end(), 1.f) - 150) < 40);
  CHECK(session.run(captured, feeds).to_vector<float>() ==
        session.run(captured, feeds).to_vector<float>());
}

TEST_CASE("a _like draw of a concrete tensor is drawn now, in its shape and dtype") {
  set_seed(Seed{2});
  const Tensor x = Tensor::zeros({2, 30}, DType::f64).with_grad();
  const Tensor noise = normal_like(x);
  CHECK(noise.shape() == x.shape());
  CHECK(noise.dtype() == DType::f64);
  CHECK_FALSE(noise.requires_grad());
  CHECK(normal_like(x).to_vector<double>() != noise.to_vector<double>());
  set_seed(Seed{2});
  CHECK(normal({2, 30}, {.dtype = DType::f64}).to_vector<double>() == noise.to_vector<double>());
}

TEST_CASE("a random operator of a graph that is refused leaves the graph as it was") {
  Graph graph;
  CHECK_ERROR(normal(graph, {kOpen, 3}), ShapeError, "[?, 3]; normal_like does");
  CHECK_ERROR(uniform(graph, {3}, {.dtype = DType::i32}), ShapeError,
              "makes f32, f64, f16 or bf16, not i32");
  CHECK_ERROR(bernoulli(graph, {3}, {.probability = 2}), Error, "a probability in [0, 1]");
  CHECK_ERROR(uniform(graph, {3}, {.low = 1, .high = 0}), Error, "takes finite bounds");
  CHECK_ERROR(normal(graph, {3}, {.standard_deviation = -1}), Error, "of 0 or more");
  CHECK(graph.size() == 0);
  CHECK_ERROR(normal_like(Tensor::zeros({3}, DType::i32)), ShapeError,
              "makes f32, f64, f16 or bf16, not i32");
  CHECK_ERROR(bernoulli_like(Tensor::zeros({3}), -1), Error, "a probability in [0, 1]");
  std::vector<Floats> drawn;
  for (const bool after_refusals : {false, true}) {
    Graph again;
    constexpr std::int64_t kHuge = std::int64_t{1} << 40;
    if (after_refusals) {
      CHECK_ERROR(uniform(again, {kHuge, kHuge}), ShapeError, "too large");
      CHECK_ERROR(randint(again, 0, 9, {kHuge, kHuge}), ShapeError, "too large");
    }
    const Tensor wanted = uniform(again, {5});
    drawn.push_back(Session(again, {.seed = Seed{4}}).run(wanted).to_vector<float>());
  }
  CHECK(drawn[0] == drawn[1]);
}
