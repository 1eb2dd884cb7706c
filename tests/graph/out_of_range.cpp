// Indices and labels out of range: the error names the operator, and a run that is fed with them
// has not happened.
#include <functional>
#include <string>
#include <vector>

#include "ebb/core/ops/cross_entropy.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/golden/golden.h"

namespace ebb::tests {
namespace {

struct IndexCase {
  const char* text;  // of the error
  Tensor x, good, bad;
  std::function<Tensor(const Tensor& x, const Tensor& indices, bool check)> call;
};

// Cases for each function that takes indices or labels, as i32 and as i64. `bad` has two wrong
// ones.
std::vector<IndexCase> cases() {
  const Tensor x = Tensor::from({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  const Tensor rows = Tensor::from({1, 0, 1}), bad_rows = Tensor::from({1, 2, -1});
  const Tensor places = Tensor::from({{0, 2}, {1, 1}}),
               bad_places = Tensor::from({{0, 2}, {-1, 3}});
  std::vector<IndexCase> all = {
      {"[softmax_cross_entropy] label 0 is 3, out of range for 3 classes; .ignored_label", x,
       Tensor::from({0, 2}), Tensor::from({3, -1}),
       [](const Tensor& s, const Tensor& y, bool check) {
         return softmax_cross_entropy(s, y, {.check_labels = check});
       }},
      {"[softmax_cross_entropy] label 1 is -1, out of range for 3 classes (", x,
       Tensor::from({-100, 2}), Tensor::from({-100, -1}),
       [](const Tensor& s, const Tensor& y, bool check) {
         return softmax_cross_entropy(s, y,
                                      {.weights = Tensor::full({3}, 2, s.dtype()),
                                       .ignored_label = -100,
                                       .check_labels = check});
       }},
      {"[embedding] index 1 is 2, out of range for an axis of 2; a mask clamps first", x, rows,
       bad_rows,
       [](const Tensor& t, const Tensor& i, bool check) {
         return embedding(t, i, {.check_labels = check});
       }},
      {"[index_select] index [1, 0] is -1, out of range for an axis of 3", x, places, bad_places,
       [](const Tensor& t, const Tensor& i, bool check) {
         return index_select(t, i, 1, {.check_labels = check});
       }},
      {"[index_add] index 1 is 2, out of range for an axis of 2", x, rows, bad_rows,
       [](const Tensor& t, const Tensor& i, bool check) {
         const Tensor added = Tensor::full({3, 3}, 1, t.dtype()) * sum(t);
         return index_add(t, i, added, 0, {.check_labels = check});
       }},
      {"[gather] index [1, 0] is -1, out of range for an axis of 3", x, places, bad_places,
       [](const Tensor& t, const Tensor& i, bool check) {
         return gather(t, 1, i, {.check_labels = check});
       }},
      {"[pick] index 0 is 3, out of range for an axis of 3", x, Tensor::from({0, 2}),
       Tensor::from({3, -1}),
       [](const Tensor& t, const Tensor& i, bool check) {
         return pick(t, i, {.check_labels = check});
       }},
      {"[scatter_add] index [1, 0] is -1, out of range for an axis of 3", x, places, bad_places,
       [](const Tensor& t, const Tensor& i, bool check) {
         const Tensor added = Tensor::full({2, 2}, 1, t.dtype()) * sum(t);
         return scatter_add(t, 1, i, added, {.check_labels = check});
       }}};
  for (std::size_t i = 0, count = all.size(); i < count; ++i) {
    all.push_back(all[i]);
    all.back().good = cast(all[i].good, DType::i64);
    all.back().bad = cast(all[i].bad, DType::i64);
    all.push_back(all[i]);
    all.back().x = cast(all[i].x, DType::f16);
  }
  return all;
}

// Whether the check must be asked for, as on a GPU.
bool is_asked() { return on_cuda(); }

}  // namespace

TEST_CASE("an index out of range is an error that names it, the first one, and the line") {
  for (const IndexCase& c : cases()) {
    CAPTURE(c.text);
    CHECK_NOTHROW(c.call(c.x, c.good, true));
    CHECK_ERROR(c.call(c.x, c.bad, is_asked()), Error, c.text);
    CHECK_ERROR(c.call(c.x, c.bad, is_asked()), Error, __FILE__);
    CHECK_NOTHROW(c.call(c.x, c.good, false));
    if (!on_cuda()) continue;
    CHECK_NOTHROW(c.call(c.x, c.bad, false));
    const DetectNan detect;
    CHECK_ERROR(c.call(c.x, c.bad, false), Error, c.text);
  }
  CHECK_ERROR(gather(Tensor::zeros({0}), 0, Tensor::from({0}), {.check_labels = true}), Error,
              "an axis of 0");
  CHECK_ERROR(index_add(Tensor::zeros({0, 2}), Tensor::from({0}), Tensor::zeros({1, 2}), 0,
                        {.check_labels = true}),
              Error, "an axis of 0");
}

TEST_CASE("a run that is fed with an index out of range has not happened") {
  for (const IndexCase& c : cases())
    for (const bool passes : {true, false}) {
      CAPTURE(c.text, passes);
      Graph graph;
      const Parameters parameters(graph);
      const Tensor w = parameters.declare("w", c.x.shape(), initializers::constant(1));
      const Tensor count = parameters.state("count", {});
      const Tensor i = graph.placeholder("i", c.bad.dtype(), c.bad.shape());
      const Tensor drawn = uniform(graph, {4}), counted = add_assign(count, 1);
      const Tensor y = c.call(cast(w, c.x.dtype()), i, is_asked());
      const Tensor computed = c.call(cast(w, c.x.dtype()), i + 1 - 1, is_asked());
      const Tensor gradient = gradients(sum(cast(y, DType::f32)), {w})[0];
      Session session(graph, {.passes = passes, .seed = Seed{1}}), other(graph, {.seed = Seed{1}});
      session.initialize();
      other.initialize();
      const Feeds good = {{i, c.good}}, bad = {{i, c.bad}};
      const auto run = [&](const Tensors& all, const Feeds& feeds) {
        return session.run(all, feeds);
      };
      CHECK_ERROR(run({counted, drawn, y}, bad), Error, c.text);
      CHECK_ERROR(run({drawn, gradient}, bad), Error, c.text);
      CHECK_ERROR(run({y}, bad), Error, "), in a run (" __FILE__);
      // A GPU checks when the operator runs, by which time `count` may have been updated.
      if (!on_cuda()) CHECK(session.value(count).item<float>() == 0);
      session.assign(count, Tensor::full({}, 0));
      const Tensors values = run({counted, drawn, y}, good);
      CHECK(values[0].item<float>() == 1);
      CHECK(bit_equal(values[1], other.run(drawn)));
      CHECK(bit_equal(values[2], other.run(y, good)));
      // Computed indices are checked in the run. An update before that check cannot be undone.
      CHECK_ERROR(run({computed, drawn}, bad), Error, c.text);
      CHECK(bit_equal(run({drawn}, {})[0], other.run(drawn)));
      CHECK_ERROR(run({counted, computed}, bad), Error, c.text);
      CHECK_ERROR(session.value(count), Error, "add_assign");
      const DetectNan detect;
      CHECK_ERROR(run({c.call(cast(w, c.x.dtype()), i, false)}, bad), Error, c.text);
    }
}

TEST_CASE("class probabilities are no labels that could be checked") {
  const Tensor x = Tensor::from({{1.f, 2.f, 3.f}, {4.f, 5.f, 6.f}});
  const Tensor shares = Tensor::from({{-7.f, 0.5f, 9.f}, {0.f, 1.f, 0.f}});
  const Tensor wanted = softmax_cross_entropy(x, shares);
  Graph graph;
  const Tensor fed = graph.placeholder("shares", DType::f32, {-1, 3});
  const Tensor loss = softmax_cross_entropy(x, fed, {.check_labels = true});
  CHECK(bit_equal(softmax_cross_entropy(x, shares, {.check_labels = true}), wanted));
  CHECK(bit_equal(Session(graph).run(loss, {{fed, shares}}), wanted));
  const DetectNan detect;
  CHECK(bit_equal(Session(graph).run(loss, {{fed, shares}}), wanted));
}

TEST_CASE("the first index out of range is named, whichever thread meets one first") {
  if (!on_host()) return;
  const int before = Workers::instance().threads();
  std::vector<std::int64_t> indices(300'000, 0);
  for (std::size_t i = 123'457; i < indices.size(); i += 7) indices[i] = static_cast<int>(i);
  const Tensor i = Tensor::from(indices), x = Tensor::zeros({300'000, 2});
  for (const int threads : {1, 2, 5}) {
    Workers::instance().set_threads(threads);
    const std::string text = "123457 is 123457, out of range for ";
    CHECK_ERROR(softmax_cross_entropy(x, i), Error, "label " + text + "2 classes");
    CHECK_ERROR(index_select(Tensor::zeros({3}), i), Error, "index " + text + "an axis of 3");
    CHECK_ERROR(scatter_add(Tensor::zeros({3}), 0, i, Tensor::zeros({300'000})), Error,
                "index " + text + "an axis of 3");
  }
  Workers::instance().set_threads(before);
}

}  // namespace ebb::tests
