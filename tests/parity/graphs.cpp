// Programs of TensorFlow 1, compared with the results of its sessions.
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {

EBB_ROW("tf1.placeholder, feed_dict") {
  row.holds([](const Tensors& values) {
    Graph graph;
    const Tensor x = graph.placeholder("x", DType::f64, {-1});
    Session session(graph);
    auto [twice, total] = session.run({x * 2, sum(x)}, {{x, values[0]}});
    return Tensors{twice, total};
  });
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

EBB_ROW("tf1.gradients, tf.stop_gradient, tf1.hessians") {
  row.holds([](const Tensors& values) {
    Graph graph;
    const Tensor a = graph.placeholder("a", DType::f64, {3});
    const Tensor b = a + 1, unused = graph.placeholder("unused", DType::f64, {3});
    const Tensors g = gradients(sum(a * a * b.detach()), {a, b, unused});
    const Tensor slope = gradients(sum(a * a * a), {a}, {.create_graph = true})[0];
    const Tensor curvature = gradients(sum(slope), {a})[0];  // the Hessian is diagonal
    Session session(graph);
    auto [of_a, of_b, of_unused, hessian] =
        session.run({g[0], g[1], g[2], unsqueeze(curvature, 1) * eye(3, {.dtype = DType::f64})},
                    {{a, values[0]}, {unused, values[0]}});
    CHECK(numbers(of_b) == std::vector<double>(3, 0));
    CHECK(numbers(of_unused) == std::vector<double>(3, 0));
    return Tensors{of_a, hessian};
  });
}

EBB_ROW("tf1.cond(c, f, g)") {
  row.holds([](const Tensors& values) {
    Graph graph;
    const Tensor flag = graph.placeholder("flag", DType::boolean, {});
    const Tensor x = graph.placeholder("x", DType::f64, {3});
    const Tensor y = where(flag, x * 2, x - 1);
    const Tensor gradient = gradients(sum(y), {x})[0];
    Session session(graph);
    Tensors all;
    for (const double f : {1.0, 0.0}) {
      auto [value, slope] =
          session.run({y, gradient}, {{flag, Tensor::full({}, f, DType::boolean)}, {x, values[0]}});
      all.push_back(value);
      all.push_back(slope);
    }
    return all;
  });
}

EBB_ROW("tf1.while_loop of 3 steps") {
  row.holds([](const Tensors& values) {
    Graph graph;
    const Tensor x = graph.placeholder("x", DType::f64, {3});
    Tensor y = x;
    for (int i = 0; i < 3; ++i) y = sin(y);
    Session session(graph);
    return Tensors{session.run(y, {{x, values[0]}})};
  });
}

EBB_ROW("tf.scan") {
  row.holds([](const Tensors& values) {
    Graph graph;
    const Tensor x = graph.placeholder("x", DType::f64, {3});
    std::vector<Tensor> carried = {x[0]};
    for (int t = 1; t < x.size(0); ++t) carried.push_back(0.5 * carried.back() + x[t]);
    Session session(graph);
    return Tensors{session.run(stack(carried), {{x, values[0]}})};
  });
}

EBB_ROW("tf1.train.Optimizer.minimize") {
  const auto train = [](const Tensors& values) {
    Graph graph;
    const Tensor x = graph.placeholder("x", DType::f64, {3});
    Parameters params(graph, Seed{1}, DType::f64);
    const Tensor weight = params.declare("w", {3}, initializers::constant(1));
    const Tensor step =
        optim::Sgd({.learning_rate = 0.1}).minimize(sum(square(weight - x)), params);
    Session session(graph);
    session.initialize(params);
    std::vector<Tensor> losses;
    for (int i = 0; i < 3; ++i) losses.push_back(session.run(step, {{x, values[0]}}));
    return Tensors{stack(losses), session.value(weight)};
  };
  row.holds(train, 1e-7);  // TensorFlow rounds the rate to f32
}

}  // namespace ebb::tests::parity
