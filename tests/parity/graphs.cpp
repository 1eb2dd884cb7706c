// Programs of TensorFlow 1, compared with the results of its sessions.
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {

EBB_GIVES("tf1.placeholder, feed_dict") {
  Graph graph;
  const Tensor fed = graph.placeholder("x", DType::f64, {-1});
  Session session(graph);
  auto [twice, total] = session.run({fed * 2, sum(fed)}, {{fed, x[0]}});
  return Tensors{twice, total};
}

EBB_GIVES("tf1.assign_add, tf1.global_variables_initializer") {
  Graph graph;
  Parameters params(graph);
  const Tensor count = params.state("count", {}, initializers::zeros(), DType::i64);
  const Tensor more = assign(count, count + 2);
  Session session(graph);
  session.initialize(params);
  const Tensor first = session.run(more), second = session.run(more);
  return Tensors{first, second, session.run(count)};
}

EBB_GIVES("tf.control_dependencies") {
  Graph graph;
  Parameters params(graph, Seed{1}, DType::f64);
  const Tensor value = params.state("v", {}, initializers::constant(1));
  const Tensor before = value.clone();
  const Tensor after = assign(value, value * 10);
  Session session(graph);
  session.initialize(params);
  CHECK(session.run(value).item<double>() == 1);  // the update is not fetched
  auto [old, now] = session.run({before, after});
  return Tensors{old, now};
}

EBB_GIVES("tf1.gradients, tf.stop_gradient, tf1.hessians") {
  Graph graph;
  const Tensor a = graph.placeholder("a", DType::f64, {3});
  const Tensor b = a + 1, unused = graph.placeholder("unused", DType::f64, {3});
  const Tensors g = gradients(sum(a * a * b.detach()), {a, b, unused});
  const Tensor slope = gradients(sum(a * a * a), {a}, {.create_graph = true})[0];
  const Tensor curvature = gradients(sum(slope), {a})[0];  // the Hessian is diagonal
  Session session(graph);
  auto [of_a, of_b, of_unused, hessian] =
      session.run({g[0], g[1], g[2], unsqueeze(curvature, 1) * eye(3, {.dtype = DType::f64})},
                  {{a, x[0]}, {unused, x[0]}});
  CHECK(numbers(of_b) == std::vector<double>(3, 0));
  CHECK(numbers(of_unused) == std::vector<double>(3, 0));
  return Tensors{of_a, hessian};
}

EBB_GIVES("tf1.cond(c, f, g)") {
  Graph graph;
  const Tensor flag = graph.placeholder("flag", DType::boolean, {});
  const Tensor fed = graph.placeholder("x", DType::f64, {3});
  const Tensor y = where(flag, fed * 2, fed - 1);
  const Tensor gradient = gradients(sum(y), {fed})[0];
  Session session(graph);
  Tensors all;
  for (const double f : {1.0, 0.0}) {
    auto [value, slope] =
        session.run({y, gradient}, {{flag, Tensor::full({}, f, DType::boolean)}, {fed, x[0]}});
    all.push_back(value);
    all.push_back(slope);
  }
  return all;
}

EBB_GIVES("tf1.while_loop of 3 steps") {
  Graph graph;
  const Tensor fed = graph.placeholder("x", DType::f64, {3});
  Tensor y = fed;
  for (int i = 0; i < 3; ++i) y = sin(y);
  return Tensors{Session(graph).run(y, {{fed, x[0]}})};
}

EBB_GIVES("tf.scan") {
  Graph graph;
  const Tensor fed = graph.placeholder("x", DType::f64, {3});
  std::vector<Tensor> carried = {fed[0]};
  for (int t = 1; t < fed.size(0); ++t) carried.push_back(0.5 * carried.back() + fed[t]);
  return Tensors{Session(graph).run(stack(carried), {{fed, x[0]}})};
}

EBB_GIVES("tf1.train.Optimizer.minimize", 1e-7) {  // TensorFlow rounds the rate to f32
  Graph graph;
  const Tensor fed = graph.placeholder("x", DType::f64, {3});
  Parameters params(graph, Seed{1}, DType::f64);
  const Tensor weight = params.declare("w", {3}, initializers::constant(1));
  const Tensor step =
      optim::Sgd({.learning_rate = 0.1}).minimize(sum(square(weight - fed)), params);
  Session session(graph);
  session.initialize(params);
  std::vector<Tensor> losses;
  for (int i = 0; i < 3; ++i) losses.push_back(session.run(step, {{fed, x[0]}}));
  return Tensors{stack(losses), session.value(weight)};
}

}  // namespace ebb::tests::parity
