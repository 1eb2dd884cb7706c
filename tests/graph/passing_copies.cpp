// Updates in place of a selection: refused if it is a copy that nobody can see afterwards.
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/line.h"

namespace ebb::tests {
namespace {

struct Case {
  const char* name;
  Tensor (*update)(const Tensor& x);  // f32[4, 6]
  double added = 0;                   // to the sum of x, if x is updated
};

Tensor two_rows() { return Tensor::from({0, 2}); }

const Case kRefused[] = {
    {"an index", [](const Tensor& x) { return assign(x[0], 1); }},
    {"indices", [](const Tensor& x) { return add_assign(x[0][1], 1); }},
    {"select", [](const Tensor& x) { return assign(select(x, 1, 2), Tensor::zeros({4})); }},
    {"an inner slice", [](const Tensor& x) { return assign(slice(x, 0, 2, {.axis = 1}), 1); }},
    {"steps", [](const Tensor& x) { return assign(slice(x, 0, kEnd, {.step = 2}), 1); }},
    {"flip", [](const Tensor& x) { return assign(flip(x, 0), 1); }},
    {"expand_as", [](const Tensor& x) { return assign(expand_as(x[0], x), 1); }},
    {"broadcast_to",
     [](const Tensor& x) {
       return assign(broadcast_to(x, {2, 4, 6}), 1);
     }},
    {"an inner chunk", [](const Tensor& x) { return add_assign(chunk(x, 2, 1)[0], 1); }},
    {"an inner split",
     [](const Tensor& x) {
       return assign(split(x, {1, 5}, 1)[1], 1);
     }},
    {"transpose", [](const Tensor& x) { return add_assign(transpose(x), 1); }},
    {"index_select", [](const Tensor& x) { return assign(index_select(x, two_rows()), 1); }},
    {"gather",
     [](const Tensor& x) {
       return assign(gather(x, 0, Tensor::full({1, 6}, 2, DType::i64)), 1);
     }},
    {"a reshaped one",
     [](const Tensor& x) {
       return assign(reshape(x[0], {2, 3}), 1);
     }},
    {"a detached one", [](const Tensor& x) { return assign(x[0].detach(), 1); }},
    {"rows of one", [](const Tensor& x) { return assign(slice(transpose(x), 0, 2), 1); }},
    {"a moved one",
     [](const Tensor& x) {
       Tensor row = x[0];
       return assign(std::move(row), 1);
     }},
};

const Case kTaken[] = {
    {"x", [](const Tensor& x) { return add_assign(x, 1); }, 24},
    {"rows", [](const Tensor& x) { return add_assign(slice(x, 1, 3), 1); }, 12},
    {"a chunk of rows", [](const Tensor& x) { return add_assign(chunk(x, 2)[0], 1); }, 12},
    {"a view",
     [](const Tensor& x) {
       return add_assign(slice(reshape(x, {6, 4}), 0, 1), 1);
     },
     4},
    {"a detached view", [](const Tensor& x) { return add_assign(slice(x, 0, 1).detach(), 1); }, 6},
    {"a name",
     [](const Tensor& x) {
       const Tensor row = x[0];
       return add_assign(row, 1);
     }},
    {"a name, twice",
     [](const Tensor& x) {
       const Tensor row = x[0];
       return add_assign(add_assign(row, 1), 1);
     }},
    {"a name reshaped",
     [](const Tensor& x) {
       const Tensor row = x[0];
       return add_assign(reshape(row.detach(), {2, 3}), 1);
     }},
    {"an element of a named list",
     [](const Tensor& x) {
       const Tensors parts = chunk(x, 2, 1);
       return add_assign(parts[0], 1);
     }},
    {"what a function hands out of its own",
     [](const Tensor& x) {
       const Tensor row = x[0];
       const auto own = [&] { return row; };
       return add_assign(own(), 1);
     }},
    {"a clone", [](const Tensor& x) { return add_assign(x[0].clone(), 1); }},
    {"a result", [](const Tensor& x) { return add_assign(x[0] * 2, 1); }},
    {"a new tensor",
     [](const Tensor& x) {
       return add_assign(Tensor::zeros({4, 6}), x * 0 + 1);
     }},
};

void check_refused(const Tensor& x) {
  for (const Case& refused : kRefused) {
    INFO(refused.name);
    CHECK_ERROR(refused.update(x), Error, "updates a copy and leaves x as it is");
  }
  if (!x.is_symbolic())
    CHECK_ERROR(assign(x[0].to(x.device()), 1), Error, "updates a copy and leaves x as it is");
  for (const char* way : {"[assign]", "assign_slice(x, begin, value, {.axis})",
                          "slice(x, begin, end)", "where", "index_add", "clone()"})
    CHECK_ERROR(assign(x[0], 1), Error, way);
  CHECK_ERROR(assign(x[0], 1), Error, line(__LINE__));
}

double summed(const Tensor& x) { return sum(x.detach()).item<double>(); }

}  // namespace

TEST_CASE("an update of a copy that nobody can see is refused, on a tape, off it and in a graph") {
  const Tensor plain = Tensor::zeros({4, 6}), taped = Tensor::zeros({4, 6}).with_grad() * 1;
  Graph graph;
  const Tensor symbolic = graph.placeholder("x", DType::f32, {4, 6}) * 1;
  for (const Tensor& x : {plain, taped, symbolic}) check_refused(x);
  CHECK(summed(plain) == 0);
}

TEST_CASE("an update of x's own memory, or of a copy that has a name, is what it says") {
  for (const Case& taken : kTaken) {
    INFO(taken.name);
    const Tensor plain = Tensor::zeros({4, 6}), taped = Tensor::zeros({4, 6}).with_grad() * 1;
    for (const Tensor& x : {plain, taped}) {
      CHECK(summed(taken.update(x)) > 0);
      CHECK(summed(x) == taken.added);
    }
    Graph graph;
    const Tensor fed = graph.placeholder("x", DType::f32, {4, 6}), x = fed * 1;
    const Tensor updated = taken.update(x), after = sum(x);
    Session session(graph);
    const Tensors fetched = session.run({sum(updated), after}, {{fed, plain * 0}});
    CHECK(fetched[0].item<double>() > 0);
    CHECK(fetched[1].item<double>() == taken.added);
  }
}

}  // namespace ebb::tests
