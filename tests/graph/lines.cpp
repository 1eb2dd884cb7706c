// Errors of a session name the user's call, and the other place where the mistake may be.
#include <string>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/line.h"

namespace ebb::tests {

TEST_CASE("a run that cannot be names the placeholder, its line, and that of the run") {
  Graph graph;
  const int declared = __LINE__ + 1;
  const Tensor x = graph.placeholder("pixels", DType::f32, {-1, 8});
  const Tensor v = graph.placeholder("v", DType::f32, {});
  Session session(graph);
  const std::string placeholder = "[run] placeholder 'pixels' " + line(declared);
  const std::string nothing = placeholder + " is fed with a tensor that holds nothing";
  const Tensor y = x * 2, right = Tensor::zeros({4, 8});
  CHECK_ERROR_HERE(session.run(y), Error, placeholder + " is not fed (");
  CHECK_ERROR_HERE(session.run(y, {{x, Tensor::zeros({4, 7})}}), ShapeError,
                   placeholder + " is f32[?, 8] and cannot be fed with shape [4, 7] (");
  CHECK_ERROR_HERE(session.run(y, {{x, Tensor::zeros({4, 8}, DType::f64)}}), ShapeError,
                   placeholder + " is f32[?, 8] and cannot be fed with f64[4, 8]");
  CHECK_ERROR_HERE(session.run(y, {{x, right}, {x, right}}), Error, "is fed twice (");
  CHECK_ERROR_HERE(session.run(y, {{x, Tensor()}}), Error,
                   nothing + "; it takes a concrete tensor");
  CHECK_ERROR_HERE(session.run(y, {{x, x}}), Error,
                   placeholder + " is fed with symbolic f32[?, 8]; it takes a concrete tensor");
  // The message does not depend on the order of the feeds.
  const Tensor both = x * v, scalar = Tensor::zeros({});
  for (const Feeds& feeds : {Feeds{{x, Tensor()}, {v, scalar}}, Feeds{{v, scalar}, {x, Tensor()}}})
    CHECK_ERROR(session.run(both, feeds), Error, nothing);
  auto backwards = session.prepare(both, {v, x}), forwards = session.prepare(both, {x, v});
  CHECK_ERROR(backwards(scalar, Tensor()), Error, nothing);
  CHECK_ERROR(forwards(Tensor(), scalar), Error, nothing);
  const int prepared = __LINE__ + 1;
  auto step = session.prepare(y, {x});
  CHECK_ERROR(step(Tensor()), Error, nothing);
  CHECK_ERROR(step(x), Error, placeholder + " is fed with symbolic f32[?, 8]");
  CHECK_ERROR(step(x), Error, line(prepared));
  CHECK_ERROR(session.run(Tensor::zeros({2})), Error, "not a tensor of this graph");
  CHECK_ERROR(session.run({y, v}, {{x, right}}), Error, "'v' ");
  Graph other;
  CHECK_ERROR(x + other.placeholder("x", DType::f32, {8}), Error, "two graphs");
  CHECK_ERROR(graph.placeholder("v", DType::f32, {1}), Error, "'v' is taken");
  CHECK_ERROR(v.item<float>(), Error, "symbolic");
  CHECK_ERROR(v.backward(), Error, "symbolic");
  CHECK_ERROR(session.run(Tensors{}, {}), Error, "nothing to fetch");
  CHECK_ERROR(session.prepare(v, {v * 1}), Error, "placeholder");
}

TEST_CASE("an operator that takes no such shapes is named with its line and the run's") {
  Graph graph;
  const Tensor a = graph.placeholder("a", DType::f32, {-1, -1});
  const Tensor b = graph.placeholder("b", DType::f32, {-1, -1});
  const int applied = __LINE__ + 1;
  const Tensor y = matmul(a, b);
  Session session(graph);
  const Tensor x = Tensor::zeros({2, 3});
  CHECK_ERROR_HERE(session.run(y, {{a, x}, {b, x}}), ShapeError, line(applied) + ", in a run (");
  PreparedStep step = session.prepare(y, {a, b});
  const int prepared = __LINE__ - 1;
  CHECK_ERROR(step(x, x), ShapeError, ", in a run " + line(prepared));
  CHECK_ERROR(step(x), Error, "takes 2 values and was given 1 " + line(prepared));
  CHECK_ERROR(step(x, x, x), Error, "takes 2 values and was given 3");
}

TEST_CASE("what a tensor is asked for and has not names the call") {
  Graph graph;
  const Tensor nothing, x = Tensor::zeros({2, 3}),
                        open = graph.placeholder("x", DType::f32, {-1, 8});
  const std::string why = "] of a tensor that holds nothing, as .grad() does before the first";
  CHECK_ERROR_HERE(nothing.shape(), Error, why);
  CHECK_ERROR_HERE(nothing.dtype(), Error, "[dtype" + why);
  CHECK_ERROR_HERE(nothing.rank(), Error, why);
  CHECK_ERROR_HERE(nothing.size(0), Error, why);
  CHECK_ERROR_HERE(nothing.elements(), Error, why);
  CHECK_ERROR_HERE(nothing.bytes(), Error, why);
  CHECK_ERROR_HERE(nothing.device(), Error, why);
  CHECK_ERROR_HERE(nothing.with_grad(), Error, "holds nothing");
  CHECK_ERROR_HERE(x.size(9), ShapeError, "[size] there is no axis 9; the tensor is f32[2, 3]");
  CHECK_ERROR(x.size(-3), ShapeError, "there is no axis -3");
  CHECK(x.size(-2) == 2);
  CHECK_ERROR_HERE(open.size(0), ShapeError, "is not known before a session runs");
  CHECK(open.size(1) == 8);
  const std::string unknown = "] the number of elements of f32[?, 8] is not known";
  CHECK_ERROR_HERE(open.elements(), ShapeError, "[elements" + unknown);
  CHECK_ERROR_HERE(open.bytes(), ShapeError, "[bytes" + unknown);
  CHECK_ERROR_HERE(open.device(), Error, "");
  CHECK_ERROR_HERE(open.with_grad(), Error, "");
  CHECK_ERROR_HERE(cast(x, DType::i64).with_grad(), Error, "i64");
  CHECK_ERROR_HERE(open.shape()[0], ShapeError, "the size of axis 0 of [?, 8] is not known");
  CHECK_ERROR(open.shape()[-2], ShapeError, "size(x, axis) is a tensor of it");
  CHECK_ERROR_HERE(x.shape()[-3], ShapeError, "[shape] there is no axis -3 in [2, 3]");

  // Errors in dimensions given in braces name the line of the braces.
  const std::string no_shape = "[shape] a dimension cannot be -2 (";
  CHECK_ERROR_HERE(Tensor::zeros({4, -2}), ShapeError, no_shape);
  CHECK_ERROR_HERE(reshape(x, {-2, 3}), ShapeError, "[reshape] a dimension cannot be -2 (");
  CHECK_ERROR_HERE(graph.placeholder("y", DType::f32, {8, -2}), ShapeError, no_shape);
  CHECK_ERROR_HERE(Tensor::zeros({1, 1, 1, 1, 1, 1, 1}), ShapeError,
                   "[shape] a tensor has at most 6 dimensions (");
  CHECK_ERROR_HERE(Shape({1, -2}), ShapeError, no_shape);
  const std::vector<std::int64_t> dims = {-2};
  CHECK_ERROR(Shape(dims), ShapeError, "a dimension cannot be -2");

  // Calls that the library makes name the user's line on whose behalf it makes them.
  const detail::CallSiteScope at({"user.cpp", 42});
  CHECK_ERROR(Tensor::zeros({-2}), ShapeError, no_shape + "user.cpp:42)");
  CHECK_ERROR(nothing.shape(), Error, "(user.cpp:42)");
  CHECK_ERROR(x.size(9), ShapeError, "(user.cpp:42)");
  CHECK_ERROR(open.elements(), ShapeError, "(user.cpp:42)");
  CHECK_ERROR(open.device(), Error, "(user.cpp:42)");
}

TEST_CASE("a plan that cannot be made names the call") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 8}), y = sum(matmul(x, x), 0);
  const auto plan = [&](const FedShapes& shapes, CallSite site = CallSite::here()) {
    graph.plan({y}, shapes, Device::cpu(), {}, site);
  };
  CHECK_ERROR(plan({}), Error, "[plan] placeholder 'x' ");
  CHECK_ERROR_HERE(plan({}), Error, " is not fed (");
  CHECK_ERROR(plan({{x, {8, 8}}, {x, {8, 8}}}), Error, "[plan] placeholder 'x' ");
  CHECK_ERROR(
      plan({{x, {8, 8}}, {y, {8}}}), Error,
      "[plan] only placeholders of this graph can be fed; feed 2 of 2 is for symbolic f32[8], "
      "a result of sum (");
  Session session(graph);
  const Tensor other = Graph().placeholder("other", DType::f32, {8}), value = Tensor::zeros({8});
  CHECK_ERROR(session.run(y, {{other, value}}), Error, "feed 1 of 1 is for placeholder 'other' (");
  CHECK_ERROR_HERE(session.run(y, {{other, value}}), Error, " of another graph (");
  const Tensor w = Parameters(graph).declare("w", {8}, initializers::zeros());
  CHECK_ERROR(session.run(w, {{w, value}}), Error, "feed 1 of 1 is for parameter 'w' (");
  CHECK_ERROR(session.run(w, {{w, value}}), Error, ", which Session::assign sets");
  CHECK_ERROR_HERE(graph.plan(Tensors(), {}, Device::cpu()), Error, "[plan] nothing to fetch (");
  CHECK_ERROR(graph.plan({Tensor::zeros({2})}, {}, Device::cpu()), Error,
              "[plan] a fetch is not a tensor of this graph: ");
  CHECK_ERROR(plan({{x, {4, 7}}}), ShapeError, "[plan] placeholder");
  CHECK_ERROR_HERE(plan({{x, {4, 7}}}), ShapeError, "fed with shape [4, 7] (");
  CHECK_ERROR_HERE(plan({{x, {4, 8}}}), ShapeError, ", in a plan (");
  CHECK_ERROR_HERE(plan({{x, {std::int64_t{1} << 62, 8}}}), ShapeError,
                   "[plan] the shape [4611686018427387904, 8] has more elements");
  CHECK_ERROR_HERE(graph.plan({y}, {}, Device::cpu()), Error, "");
}

TEST_CASE("what reads and writes variables names the call") {
  const TemporaryFolder folder;
  Graph graph;
  const Parameters parameters(graph);
  const Tensor w = parameters.declare("dense.weight", {2, 3}, initializers::constant(1));
  const Tensor b = parameters.declare("dense.bias", {3}, initializers::constant(1));
  Session session(graph);
  CHECK_ERROR_HERE(session.run(w * 2), Error, "call initialize or restore first (");
  CHECK_ERROR_HERE(session.value(w), Error, "has no value (");
  session.initialize();
  CHECK_ERROR_HERE(session.assign(w, Tensor::zeros({3})), ShapeError, "");
  CHECK_ERROR(session.value(w * 2), Error, "takes a variable " + std::string("of this session's"));
  const char* const misspelt = "dense.wieght";
  CHECK_ERROR_HERE(parameters[misspelt], Error, "dense.weight, dense.bias (");
  CHECK_ERROR(parameters["bias"], Error, "there are dense.bias, dense.weight");

  Parameters eager(Device::cpu(), Seed{1});
  eager.declare("dense.weights", {2, 3}, initializers::constant(1));
  eager.declare("out.bias", {3}, initializers::constant(1));
  const std::string file = folder.path("weights");
  eager.save(file);
  CHECK_ERROR_HERE(session.restore(file), FileError,
                   "has no parameter 'dense.weight'; it has dense.weights, out.bias (");
  eager.declare("late", {}, initializers::constant(1));
  CHECK_ERROR_HERE(eager.load(file), FileError, "\"late\", which is f32[] here; it has");
  session.close();
  CHECK_ERROR_HERE(session.run(w * 2), SessionClosed, "this session is closed (");
}

}  // namespace ebb::tests
