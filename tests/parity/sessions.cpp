// Calls of TensorFlow 1's sessions, written as programs of ebb.
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {
namespace {

using Values = std::vector<double>;

// A variable w = 1, and a step that subtracts 0.25 times its gradient, 2 w.
struct Program {
  Graph graph;
  Parameters params{graph, Seed{1}, DType::f64};
  Tensor w = params.declare("w", {}, initializers::constant(1));
  Tensor loss = square(w);
  Tensor train = optim::Sgd({.learning_rate = 0.25}).minimize(loss, params);
};

double number(const Tensor& x) { return numbers(x)[0]; }

}  // namespace

EBB_PROGRAM("tf1.get_variable('w', [2]), tf1.variable_scope('s')") {
  Graph graph;
  Parameters params(graph);
  params.scope("s").declare("w", {2}, initializers::zeros());
  CHECK(params.contains("s.w"));
  CHECK_ERROR(params.scope("s").declare("w", {2}, initializers::zeros()), Error, "s.w");
}
EBB_PROGRAM("tf1.trainable_variables(), var_list=") {
  const Program program;
  CHECK(program.params.entries().size() == 1);
  CHECK(program.params.scope("no").entries().empty());
}
EBB_PROGRAM("with tf1.Session() as session:") {
  const Program program;
  Session session(program.graph);
  session.initialize();
  const Tensor loss = session.run(program.loss);
  session.close();
  CHECK(session.memory().total_bytes == 0);
  CHECK(number(loss) == 1);  // the fetched value belongs to the caller
  CHECK_ERROR(session.run(program.loss), SessionClosed, "");
}
EBB_PROGRAM("session.run(v) of what was never initialized") {
  const Program program;
  Session session(program.graph);
  CHECK_ERROR(session.run(program.loss), Error, "w");
}
EBB_PROGRAM("session.run([train, loss])") {
  const Program program;
  Session session(program.graph);
  session.initialize(program.params);
  CHECK(number(session.run(program.loss)) == 1);
  CHECK(number(session.run(program.loss)) == 1);   // trains nothing
  CHECK(number(session.run(program.train)) == 1);  // the loss before the step
  auto [trained, loss] = session.run({program.train, program.loss});
  CHECK(number(trained) == 0.25);
  CHECK(number(loss) == 0.25);
}
EBB_PROGRAM("tf1.group(a, b)") {
  Graph graph;
  Parameters params(graph, Seed{1}, DType::f64);
  const Tensor a = params.state("a", {}), b = params.state("b", {});
  const Tensor one = assign(a, 1), two = assign(b, 2);
  Session session(graph);
  session.initialize(params);
  session.run(Tensors{one, two});
  CHECK(number(session.value(a)) == 1);
  CHECK(number(session.value(b)) == 2);
}
EBB_PROGRAM("v.eval(session), v.load(value, session)") {
  const Program program;
  Session session(program.graph);
  session.initialize();
  session.assign(program.w, Tensor::full({}, 3, DType::f64));
  CHECK(number(session.value(program.w)) == 3);
  CHECK(number(session.run(program.loss)) == 9);
}
EBB_PROGRAM("tf1.train.Saver().save(session, f), .restore(session, f)") {
  const TemporaryFolder folder;
  const Program program;
  Session session(program.graph);
  session.initialize();
  session.run(program.train);
  session.save(folder.path("model.safetensors"));
  session.run(program.train);
  Session other(program.graph);
  other.restore(folder.path("model.safetensors"));
  CHECK(number(other.value(program.w)) == 0.5);
}
EBB_PROGRAM("optimizer.compute_gradients, optimizer.apply_gradients") {
  Graph graph;
  Parameters params(graph, Seed{1}, DType::f64);
  const Tensor w = params.declare("w", {}, initializers::constant(1));
  const Tensor gradient = gradients(square(w), {w})[0];
  const Tensor step = optim::Sgd({.learning_rate = 0.25}).apply({gradient / 2}, params);
  Session session(graph);
  session.initialize();
  CHECK(number(session.run(step)) == 1);
  CHECK(number(session.value(w)) == 0.75);
}
EBB_PROGRAM("tf1.train.get_global_step()") {
  Graph graph;
  Parameters params(graph, Seed{1}, DType::f64);
  const Tensor w = params.declare("w", {}, initializers::constant(1));
  const Tensor train = optim::Adam().minimize(square(w), params);
  Session session(graph);
  session.initialize();
  session.run(train);
  session.run(train);
  CHECK(number(session.value(params["adam/step"])) == 2);
}
EBB_PROGRAM("session.make_callable(train, [x])") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f64, {-1});
  Session session(graph);
  auto step = session.prepare(sum(x), {x});
  CHECK(number(step(Tensor::from({1.0, 2.0}))) == 3);
  CHECK(number(step(Tensor::from({1.0, 2.0, 3.0}))) == 6);
}
EBB_PROGRAM("a read above and a read below an assign") {
  Graph graph;
  Parameters params(graph, Seed{1}, DType::f64);
  const Tensor v = params.state("v", {}, initializers::constant(1));
  const Tensor before = v * 1, update = assign(v, 5), after = v * 1;
  Session session(graph);
  session.initialize();
  auto [old, updated, now] = session.run({before, update, after});
  CHECK(number(old) == 1);
  CHECK(number(updated) == 5);
  CHECK(number(now) == 5);
}
EBB_PROGRAM("tf1.add_check_numerics_ops()") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {1});
  const Tensor y = log(x);
  Session session(graph);
  DetectNan detect;
  CHECK_ERROR(session.run(y, {{x, Tensor::from({-1.f})}}), NotANumber, "[log]");
}
EBB_PROGRAM("tf1.placeholder(tf.float32, [None, 3])") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 3});
  const Tensor count = rows(x);
  Session session(graph);
  CHECK(number(session.run(count, {{x, Tensor::zeros({4, 3})}})) == 4);
  CHECK_ERROR(session.run(count, {{x, Tensor::zeros({4, 2})}}), ShapeError, "x");
  CHECK_ERROR(session.run(sum(x)), Error, "x");
}

}  // namespace ebb::tests::parity
