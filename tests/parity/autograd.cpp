// Gradients and the tape.
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {
namespace {

using Values = std::vector<double>;

Tensor leaf() { return Tensor::from({1.0, 2.0, 3.0}).with_grad(); }

}  // namespace

EBB_PROGRAM("torch.tensor(.., requires_grad=True), x.requires_grad_()") {
  CHECK(leaf().requires_grad());
  const Tensor x = Tensor::from({1.0});
  CHECK_FALSE(x.requires_grad());
  CHECK(x.with_grad().requires_grad());
}
EBB_PROGRAM("loss.backward(), x.grad") {
  const Tensor x = leaf();
  CHECK_FALSE(x.grad().defined());
  sum(square(x)).backward();
  CHECK(numbers(x.grad()) == Values{2, 4, 6});
  sum(square(x)).backward();  // adds to the gradient
  CHECK(numbers(x.grad()) == Values{4, 8, 12});
}
EBB_PROGRAM("y.backward(v)") {
  const Tensor x = leaf(), y = square(x), v = Tensor::from({1.0, 0.0, 2.0});
  sum(y * v).backward();
  CHECK(numbers(x.grad()) == Values{2, 0, 12});
}
EBB_PROGRAM("optimizer.zero_grad(), x.grad = None") {
  Parameters params(Device::cpu(), Seed{1}, DType::f64);
  const Tensor w = params.declare("w", {2}, initializers::constant(1));
  sum(square(w)).backward();
  params.zero_grad();
  CHECK_FALSE(w.grad().defined());
  const Tensor x = leaf();
  sum(x).backward();
  x.zero_grad();
  CHECK_FALSE(x.grad().defined());
}
EBB_PROGRAM("torch.autograd.grad(y, [x, z])") {
  const Tensor x = leaf(), z = leaf();
  const Tensors g = gradients(sum(x * z), {x, z});
  CHECK(numbers(g[1]) == Values{1, 2, 3});
  CHECK_FALSE(x.grad().defined());
}
EBB_PROGRAM("torch.autograd.grad(y, [x, unused], allow_unused=True)") {
  const Tensor x = leaf(), unused = leaf();
  CHECK(numbers(gradients(sum(x), {x, unused})[1]) == Values{0, 0, 0});
}
EBB_PROGRAM("with torch.no_grad():") {
  const Tensor x = leaf();
  {
    NoGrad no_grad;
    CHECK_FALSE(square(x).requires_grad());
  }
  CHECK(square(x).requires_grad());
}
EBB_PROGRAM("x.detach()") {
  const Tensor x = leaf();
  sum(x * x.detach()).backward();
  CHECK(numbers(x.grad()) == Values{1, 2, 3});
}
EBB_PROGRAM("loss.backward(retain_graph=True)") {
  const Tensor x = leaf(), loss = sum(square(x));
  loss.backward({.retain_graph = true});
  loss.backward();
  CHECK(numbers(x.grad()) == Values{4, 8, 12});
  CHECK_ERROR(loss.backward(), Error, "retain_graph");
}
EBB_PROGRAM("torch.autograd.grad(y, x, create_graph=True)") {
  const Tensor x = leaf();
  const Tensor slope = gradient(sum(x * x * x), x, {.create_graph = true});
  CHECK(numbers(gradient(sum(slope), x)) == Values{6, 12, 18});
}
EBB_PROGRAM("torch.utils.checkpoint.checkpoint(f, x)") {
  const Tensor x = leaf();
  int calls = 0;
  const Tensor y = recompute(
      [&](const Tensor& in) {
        ++calls;
        return square(in);
      },
      x);
  CHECK(calls == 1);
  sum(y).backward();
  CHECK(calls == 2);
  CHECK(numbers(x.grad()) == Values{2, 4, 6});
}
EBB_PROGRAM("torch.autograd.gradcheck(f, x)") {
  const auto f = [](const Tensors& in) { return sum(exp(in[0])); };
  CHECK(check_gradient(f, {Tensor::from({0.1, 0.2})}));
}
EBB_PROGRAM("torch.autograd.set_detect_anomaly(True)") {
  DetectNan detect;
  CHECK_ERROR(log(Tensor::from({-1.f})), NotANumber, "[log]");
}
EBB_PROGRAM("x += 1") {
  Tensor x = Tensor::from({1.0});
  const Tensor other = x;
  x += 1;
  CHECK(numbers(x) == Values{2});
  CHECK(numbers(other) == Values{1});
}
EBB_PROGRAM("x.add_(y), x.copy_(y)") {
  const Tensor x = Tensor::from({1.0}), other = x;
  add_assign(x, Tensor::from({4.0}));
  CHECK(numbers(other) == Values{5});
  assign(x, 7);
  CHECK(numbers(other) == Values{7});
}
EBB_PROGRAM("an update in place of what a gradient needs") {
  const Tensor x = leaf(), factor = Tensor::from({1.0, 1.0, 1.0});
  const Tensor loss = sum(x * factor);
  assign(factor, 2);
  CHECK_ERROR(loss.backward(), Error, "updated in place");
}
EBB_PROGRAM("with torch.no_grad(): p -= 0.1 * p.grad") {
  Parameters params(Device::cpu(), Seed{1}, DType::f64);
  params.declare("w", {2}, initializers::constant(1));
  sum(square(params["w"])).backward();
  const NoGrad no_grad;
  for (Tensor p : params.tensors()) {
    CHECK_ERROR(p -= 0.1 * p.grad(), Error, "add_assign(t, -y) changes the parameter");
    add_assign(p, -0.25 * p.grad());
  }
  CHECK(numbers(params["w"]) == Values{0.5, 0.5});
}
EBB_PROGRAM("x[0] = y, x[0].add_(y)") {
  const Tensor x = Tensor::from({{1.0, 2.0}, {3.0, 4.0}});
  CHECK_ERROR(add_assign(x[0], 1), Error, "slice(x, begin, end)");
  assign(slice(x, 0, 1), 7);
  add_assign(slice(x, 0, 1), 1);
  CHECK(numbers(x) == Values{8, 8, 3, 4});
}
EBB_PROGRAM("x[:, 1:3] = y") {
  const Tensor x = Tensor::from({{1, 2, 3, 4}, {5, 6, 7, 8}});
  assign_slice(x, 1, Tensor::from({{20, 30}, {60, 70}}), {.axis = 1});
  CHECK(numbers(x) == Values{1, 20, 30, 4, 5, 60, 70, 8});
  assign_slice(x, Tensor::from(std::int64_t{3}), Tensor::from({{40}, {80}}), {.axis = 1});
  CHECK(numbers(x) == Values{1, 20, 30, 40, 5, 60, 70, 80});
}
EBB_PROGRAM("loss.item(), x.tolist()") {
  CHECK(sum(leaf()).item<double>() == 6);
  CHECK(sum(leaf()).item<float>() == 6);
  CHECK_ERROR(leaf().to_vector<int>(), Error, "to_vector<float>");
  CHECK(leaf().to_vector<double>() == Values{1, 2, 3});
}
EBB_PROGRAM("x.to(device)") {
  const Tensor x = Tensor::from({1.f}), there = x.to(Device::simulated("cpu", 1 << 20));
  CHECK(there.device().is_simulated());
  CHECK(there.shape() == x.shape());
}
EBB_PROGRAM("optimizer.zero_grad(), loss.backward(), optimizer.step()") {
  const auto make = [] { return Parameters(Device::cpu(), Seed{1}, DType::f64); };
  const Parameters one = make(), other = make();
  const optim::Sgd sgd({.learning_rate = 0.25});
  for (const Parameters& params : {one, other}) params.declare("w", {2}, initializers::constant(1));
  sgd.minimize(sum(square(one["w"])), one);
  other.zero_grad();
  sum(square(other["w"])).backward();
  sgd.step(other);
  CHECK(numbers(one["w"]) == Values{0.5, 0.5});
  CHECK(numbers(other["w"]) == Values{0.5, 0.5});
}
EBB_PROGRAM("(loss / n).backward() n times, optimizer.step()") {
  const Tensor batch = Tensor::from({1.0, 2.0, 3.0, 6.0});
  Parameters whole(Device::cpu(), Seed{1}, DType::f64), parts(Device::cpu(), Seed{1}, DType::f64);
  const optim::Sgd sgd({.learning_rate = 0.25});
  const auto loss = [](const Parameters& params, const Tensor& x) {
    return mean(square(params["w"] - x));
  };
  for (const Parameters& params : {whole, parts})
    params.declare("w", {}, initializers::constant(0));
  sgd.minimize(loss(whole, batch), whole);
  const optim::Accumulator accumulate(sgd, {.samples = 4});
  for (const Tensor& part : chunk(batch, 2))
    accumulate.minimize(loss(parts, part), parts, rows(part));
  CHECK(numbers(parts["w"])[0] == Approx(1.5));
  CHECK(numbers(whole["w"])[0] == Approx(1.5));
}

}  // namespace ebb::tests::parity
