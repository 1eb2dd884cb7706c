// Modules: parameters, initial values, modes, saving, freezing.
#include <cmath>
#include <functional>

#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {
namespace {

using Values = std::vector<double>;

Parameters seeded() { return Parameters(Device::cpu(), Seed{7}, DType::f64); }

struct Model {
  models::Dense hidden, head;
  explicit Model(const Parameters& p)
      : hidden(p.scope("hidden"), 3, 4, Activation::relu), head(p.scope("head"), 4, 2) {}
  Tensor operator()(const Tensor& x) const { return head(hidden(x)); }
};

double deviation(const Tensor& x) {
  return standard_deviation(cast(x.detach(), DType::f64)).item<double>();
}

}  // namespace

EBB_PROGRAM("class Model(nn.Module), model.named_parameters()") {
  const Parameters params = seeded();
  const Model model(params);
  std::vector<std::string> names;
  for (const Parameters::Entry& entry : params.entries()) names.push_back(entry.name);
  CHECK(names ==
        std::vector<std::string>{"hidden.weight", "hidden.bias", "head.weight", "head.bias"});
  CHECK(model(Tensor::zeros({5, 3}, DType::f64)).shape() == Shape{5, 2});
}
EBB_PROGRAM("nn.Parameter(t), self.register_buffer('b', t)") {
  const Parameters params = seeded();
  params.declare("w", {2}, initializers::constant(3));
  params.state("b", {2});
  CHECK(params.entries().size() == 1);
  CHECK(params.states().size() == 1);
  CHECK(numbers(params["w"]) == Values{3, 3});
}
EBB_PROGRAM("sum(p.numel() for p in model.parameters())") {
  const Parameters params = seeded();
  const Model model(params);
  CHECK(params.count() == 3 * 4 + 4 + 4 * 2 + 2);
}
EBB_PROGRAM("nn.init.normal_, nn.init.xavier_uniform_, nn.init.kaiming_normal_") {
  const Parameters params = seeded();
  const Tensor a = params.declare("a", {100, 100}, initializers::normal(0, 0.02));
  const Tensor b = params.declare("b", {100, 100}, initializers::glorot_uniform(100, 100));
  const Tensor c = params.declare("c", {100, 100}, initializers::he_normal(100));
  CHECK(deviation(a) == Approx(0.02).epsilon(0.05));
  CHECK(deviation(b) == Approx(std::sqrt(2.0 / 200)).epsilon(0.05));
  CHECK(deviation(c) == Approx(std::sqrt(2.0 / 100)).epsilon(0.05));
}
EBB_PROGRAM("nn.init.trunc_normal_, nn.init.orthogonal_") {
  const Parameters params = seeded();
  const Tensor a = params.declare("a", {100, 100}, initializers::truncated_normal(0, 0.02));
  const Tensor b = params.declare("b", {20, 20}, initializers::orthogonal());
  CHECK(max(abs(a)).item<double>() <= 0.04);
  CHECK(difference(matmul(b, b, {.transpose_b = true}), eye(20, DType::f64)) == "");
}
EBB_PROGRAM("nn.Linear(3, 4), nn.GELU()") {
  const Parameters params = seeded();
  const models::Dense layer(params, 3, 4, Activation::gelu);
  const Tensor x = Tensor::from({{0.5, -1.0, 2.0}});
  CHECK(difference(layer(x), gelu(dense(x, params["weight"], params["bias"]))) == "");
}
EBB_PROGRAM("torch.func.functional_call(model, tensors, x)") {
  const Parameters params = seeded();
  const Model model(params);
  Tensors doubled;
  for (const Tensor& tensor : params.tensors()) doubled.push_back(tensor * 2);
  const Tensor x = Tensor::full({1, 3}, 1, DType::f64);
  CHECK(difference(Model(params.with(doubled))(x), model(x) * 4) == "");  // biases are 0
}
EBB_PROGRAM("layer.trainable = False") {
  const Parameters params = seeded();
  const Model model(params);
  params.scope("hidden").set_trainable(false);
  const std::vector<double> before = numbers(params["hidden.weight"]);
  const std::vector<double> head = numbers(params["head.weight"]);
  optim::Sgd(0.5).minimize(mean(model(Tensor::full({1, 3}, 1, DType::f64))), params);
  CHECK(numbers(params["hidden.weight"]) == before);
  CHECK(numbers(params["head.weight"]) != head);
}
EBB_PROGRAM("the initial values of nn.Linear, nn.LSTM, nn.Embedding") {
  const Parameters params = seeded();
  const models::Dense dense(params.scope("dense"), 100, 100);
  const models::Lstm lstm(params.scope("lstm"), 4, {.hidden = 25});
  const models::Embedding embedding(params.scope("embedding"), 100, 100);
  // PyTorch draws uniformly within 1 / sqrt(100) = 0.1, ebb within sqrt(6 / 200) = 0.173.
  CHECK(deviation(params["dense.weight"]) == Approx(std::sqrt(6.0 / 200 / 3)).epsilon(0.05));
  CHECK(numbers(params["dense.bias"]) == Values(100, 0));
  CHECK(max(abs(params["lstm.0.input"])).item<double>() <= 0.2);
  // The second quarter of the bias is the forget gate's, and ebb starts it at 1 above PyTorch's.
  const Tensors bias = chunk(params["lstm.0.bias"], 4);
  CHECK(std::abs(mean(bias[0]).item<double>()) < 0.2);
  CHECK(std::abs(mean(bias[1]).item<double>() - 1) < 0.2);
  CHECK(deviation(params["embedding.weight"]) == Approx(1).epsilon(0.05));
}
EBB_PROGRAM("model.train(), model.eval()") {
  const Tensor x = Tensor::full({50}, 1);
  CHECK(numbers(dropout(x, 0.5, Phase::inference)) == Values(50, 1));
  CHECK(numbers(dropout(x, 0.5, Phase::training)) != Values(50, 1));
}
EBB_PROGRAM("torch.save(model.state_dict(), f), model.load_state_dict(torch.load(f))") {
  const TemporaryFolder folder;
  const Parameters one = seeded(), other(Device::cpu(), Seed{8}, DType::f64);
  const Model a(one), b(other);
  CHECK(numbers(one["head.weight"]) != numbers(other["head.weight"]));
  one.save(folder.path("model.safetensors"));
  other.load(folder.path("model.safetensors"));
  CHECK(numbers(one["head.weight"]) == numbers(other["head.weight"]));
}
EBB_PROGRAM("safetensors.torch.save_file(model.state_dict(), f)") {
  const TemporaryFolder folder;
  const std::string file = folder.path("torch.safetensors");
  save_safetensors(
      file, {{"fc.weight", Tensor::from({{1.0, 2.0, 3.0}})}, {"fc.bias", Tensor::from({4.0})}});
  const Parameters params = seeded();
  const models::Dense layer(params.scope("head"), 3, 1);
  load_torch(params, file, {{"fc", "head", TorchLayer::linear}});
  CHECK(params["head.weight"].shape() == Shape{3, 1});
  CHECK(numbers(params["head.weight"]) == Values{1, 2, 3});
}
EBB_PROGRAM("p.requires_grad_(False)") {
  const Parameters params = seeded();
  const Model model(params);
  const Values before = numbers(params["hidden.weight"]), head = numbers(params["head.weight"]);
  optim::Sgd().minimize(sum(model(ones({5, 3}, {.dtype = DType::f64}))), params.scope("head"));
  CHECK(numbers(params["hidden.weight"]) == before);
  CHECK(numbers(params["head.weight"]) != head);

  // The tape of a frozen part still keeps activations. Under NoGrad it keeps none.
  const models::Mlp frozen(params.scope("frozen"), {3, 256, 256, 3});
  params.scope("frozen").set_trainable(false);
  const Tensor x = ones({64, 3}, {.dtype = DType::f64});
  const auto held = [&](const std::function<Tensor()>& run) {
    const std::size_t held_before = memory::stats(x.device()).allocated.current;
    const Tensor y = run();
    return memory::stats(x.device()).allocated.current - held_before;
  };
  const std::size_t layer = 64 * 256 * sizeof(double);
  CHECK(held([&] { return frozen(x); }) >= 2 * layer);
  CHECK(held([&] {
          const NoGrad no_grad;
          return frozen(x);
        }) < layer);
}
EBB_PROGRAM("optim.SGD([{'params': a, 'lr': 0.5}, {'params': b}], 0.25)") {
  const Parameters params = seeded();
  const Tensor a = params.scope("a").declare("w", {}, initializers::constant(1));
  const Tensor b = params.scope("b").declare("w", {}, initializers::constant(1));
  optim::minimize(a + b, {{params.scope("a"), optim::Sgd({.learning_rate = 0.5})},
                          {params.scope("b"), optim::Sgd({.learning_rate = 0.25})}});
  CHECK(a.item<double>() == 0.5);
  CHECK(b.item<double>() == 0.75);
}
EBB_PROGRAM("nn.Conv1d(2, 4, 3), nn.RMSNorm(4)") {
  const Parameters params = seeded();
  const models::Conv1d conv(params.scope("conv"), 2, 4, 3);
  const models::RmsNorm norm(params.scope("norm"), 4);
  const Tensor x = normal({3, 2, 6}, DType::f64), y = transpose(conv(x));
  CHECK(numbers(y) == numbers(transpose(conv1d(x, params["conv.weight"], params["conv.bias"]))));
  CHECK(numbers(norm(y)) == numbers(rms_norm(y, params["norm.scale"])));
}
EBB_PROGRAM("target.load_state_dict(online.state_dict())") {
  const Parameters params = seeded();
  const Model online(params.scope("online")), target(params.scope("target"));
  params.scope("target").copy_from(params.scope("online"));
  CHECK(numbers(params["target.head.weight"]) == numbers(params["online.head.weight"]));
}
EBB_PROGRAM("model.to(device), model.half()") {
  const Parameters params(Device::simulated("cpu", 1 << 20), Seed{1}, DType::f16);
  const Model model(params);
  CHECK(params.device().is_simulated());
  CHECK(params["head.weight"].dtype() == DType::f16);
}
EBB_PROGRAM("scheduler.step(), optimizer.param_groups[0]['lr'] = r") {
  const Parameters params = seeded();
  const Tensor w = params.declare("w", {}, initializers::constant(1));
  const Tensor rate = Tensor::full({}, 0.5, DType::f64);
  const optim::Sgd sgd({.learning_rate = rate});
  sgd.minimize(w * 1, params);
  CHECK(w.item<double>() == 0.5);
  assign(rate, 0.125);
  sgd.minimize(w * 1, params);
  CHECK(w.item<double>() == 0.375);
}

}  // namespace ebb::tests::parity
