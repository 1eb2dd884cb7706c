// Whole training steps in PyTorch's C++ API, on the CPU: step_worker.cpp's peer, with its commands
// "run", "losses" and "memory". libtorch.py builds it. Arguments: model, threads, file of weights.
#include <torch/torch.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

namespace nn = torch::nn;
namespace F = torch::nn::functional;
using torch::Tensor;
using Weights = std::map<std::string, Tensor>;

// Expects a header without spaces, as tensor_file.py writes it.
Weights read(const std::string& path) {
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path));
  const Tensor bytes = torch::from_file(path, false, size, torch::kUInt8);
  const std::int64_t begin = 8 + bytes.slice(0, 0, 8).view(torch::kInt64).item<std::int64_t>();
  const auto* text = reinterpret_cast<const char*>(bytes.data_ptr<std::uint8_t>());
  const std::regex entry(
      R"re("([^"]+)":\{"dtype":"(\w+)","shape":\[([\d,]*)\],"data_offsets":\[(\d+),(\d+)\])re");
  Weights weights;
  for (std::cregex_iterator it(text + 8, text + begin, entry), end; it != end; ++it) {
    const std::cmatch& match = *it;
    std::vector<std::int64_t> shape;
    std::istringstream sizes(match[3]);
    for (std::string n; std::getline(sizes, n, ',');) shape.push_back(std::stoll(n));
    weights[match[1]] = bytes.slice(0, begin + std::stoll(match[4]), begin + std::stoll(match[5]))
                            .view(match[2] == "I64" ? torch::kInt64 : torch::kFloat32)
                            .view(shape);
  }
  return weights;
}

// Makes layers from a file's weights, and has their parameters.
struct Layers : nn::Module {
  explicit Layers(const Weights& file) : weights(file) {}
  const Weights& weights;

  // PyTorch allows no dots in the names of modules.
  template <typename Layer>
  Layer keep(std::string name, Layer layer) {
    std::replace(name.begin(), name.end(), '.', '_');
    return register_module(name, layer);
  }
  nn::Linear dense(const std::string& name) {
    const Tensor& values = weights.at(name + ".weight");
    nn::Linear layer(values.size(0), values.size(1));
    layer->weight.copy_(values.t());
    layer->bias.copy_(weights.at(name + ".bias"));
    return keep(name, layer);
  }
  nn::LayerNorm norm(const std::string& name) {
    const Tensor& scale = weights.at(name + ".scale");
    nn::LayerNorm layer(nn::LayerNormOptions({scale.size(0)}));
    layer->weight.copy_(scale);
    return keep(name, layer);
  }
  nn::Sequential conv(const std::string& name, std::int64_t stride = 1) {
    const Tensor& values = weights.at(name + ".conv.weight");
    const std::int64_t n_in = values.size(1), n_out = values.size(0), kernel = values.size(2);
    auto options = nn::Conv2dOptions(n_in, n_out, kernel).stride(stride);
    nn::Conv2d layer(options.padding(kernel / 2).bias(false));
    layer->weight.copy_(values);
    return keep(name, nn::Sequential(layer, nn::BatchNorm2d(n_out)));
  }
  // The names of the numbered parts that have this weight, before it.
  std::vector<std::string> parts(const std::string& prefix, const std::string& weight) const {
    std::vector<std::string> names;
    const auto name = [&] { return prefix + std::to_string(names.size()) + "."; };
    while (weights.count(name() + weight)) names.push_back(name());
    return names;
  }
};

using Loss = std::function<Tensor(const Tensor& x, const Tensor& y)>;

Loss mlp(Layers& layers) {
  std::vector<nn::Linear> all;
  for (const std::string& part : layers.parts("", "weight"))
    all.push_back(layers.dense(part.substr(0, part.size() - 1)));
  return [all](Tensor x, const Tensor& y) mutable {
    for (std::size_t i = 0; i < all.size(); ++i) x = all[i](i == 0 ? x : torch::relu(x));
    return F::cross_entropy(x, y);
  };
}

Loss lstm(Layers& layers) {
  const Tensor &input = layers.weights.at("lstm.0.input"),
               &recurrent = layers.weights.at("lstm.0.recurrent");
  nn::LSTM lstm(nn::LSTMOptions(input.size(0), recurrent.size(0)).batch_first(true));
  auto parameters = layers.keep("lstm", lstm)->named_parameters();
  parameters["weight_ih_l0"].copy_(input.t());
  parameters["weight_hh_l0"].copy_(recurrent.t());
  parameters["bias_ih_l0"].copy_(layers.weights.at("lstm.0.bias"));
  parameters["bias_hh_l0"].zero_().requires_grad_(false);  // PyTorch adds it, and ebb has none
  return [lstm, head = layers.dense("head")](const Tensor& x, const Tensor& y) mutable {
    const auto [outputs, state] = lstm(x);
    return F::mse_loss(head(std::get<0>(state)[-1]), y);
  };
}

Loss gpt(Layers& layers) {
  struct Block {
    nn::LayerNorm norm_1, norm_2;
    nn::Linear qkv, output, fc, proj;
  };
  std::vector<Block> blocks;
  for (const std::string& part : layers.parts("block.", "norm_1.scale"))
    blocks.push_back({layers.norm(part + "norm_1"), layers.norm(part + "norm_2"),
                      layers.dense(part + "attention.qkv"), layers.dense(part + "attention.output"),
                      layers.dense(part + "fc"), layers.dense(part + "proj")});
  const auto table = [&](const std::string& name) {
    return layers.register_parameter(name, layers.weights.at(name + ".weight").clone());
  };
  return [blocks, token = table("token"), position = table("position"), norm = layers.norm("norm"),
          heads = layers.weights.at("heads").size(0)](const Tensor& tokens,
                                                      const Tensor& y) mutable {
    Tensor x = F::embedding(tokens, token) + position;
    for (Block& block : blocks) {
      std::vector<Tensor> qkv = block.qkv(block.norm_1(x)).chunk(3, -1);
      for (Tensor& part : qkv) part = part.unflatten(-1, {heads, -1}).transpose(1, 2);
      const Tensor seen = torch::scaled_dot_product_attention(qkv[0], qkv[1], qkv[2], {}, 0, true);
      x = x + block.output(seen.transpose(1, 2).flatten(-2));
      const Tensor wide = block.fc(block.norm_2(x));
      x = x + block.proj(F::gelu(wide, F::GELUFuncOptions().approximate("tanh")));
    }
    return F::cross_entropy(torch::matmul(norm(x), token.t()).flatten(0, 1), y.flatten());
  };
}

Loss resnet(Layers& layers) {
  struct Block {
    nn::Sequential first, second, shortcut;
  };
  std::vector<Block> blocks;
  for (const std::string& part : layers.parts("block.", "first.conv.weight")) {
    const bool halves = layers.weights.count(part + "shortcut.conv.weight");
    blocks.push_back({layers.conv(part + "first", halves ? 2 : 1), layers.conv(part + "second"),
                      halves ? layers.conv(part + "shortcut", 2) : nn::Sequential(nullptr)});
  }
  return [blocks, stem = layers.conv("stem"), head = layers.dense("head")](
             const Tensor& images, const Tensor& y) mutable {
    Tensor x = torch::relu(stem->forward(images));
    for (Block& block : blocks) {
      const Tensor changed = block.second->forward(torch::relu(block.first->forward(x)));
      x = torch::relu(changed + (block.shortcut ? block.shortcut->forward(x) : x));
    }
    return F::cross_entropy(head(x.mean({2, 3})), y);
  };
}

const std::map<std::string, Loss (*)(Layers&)> kModels = {
    {"mlp", mlp}, {"lstm", lstm}, {"gpt", gpt}, {"resnet", resnet}};

// Adds up what PyTorch's profiler would hear of.
struct Peak final : c10::MemoryReportingInfoBase {
  std::int64_t now = 0, most = 0;
  void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t,
                         c10::Device) override {
    most = std::max(most, now += bytes);
  }
  bool memoryProfilingEnabled() const override { return true; }
};

class Training {
 public:
  Training(const std::string& model, const Weights& weights)
      : xs_(weights.at("x").unbind()), ys_(weights.at("y").unbind()), layers_(weights) {
    {
      const torch::NoGradGuard no_grad;
      loss_ = kModels.at(model)(layers_);
    }
    std::vector<Tensor> trained;
    for (const Tensor& parameter : layers_.parameters())
      if (parameter.requires_grad()) trained.push_back(parameter);
    adam_ = std::make_unique<torch::optim::Adam>(trained, torch::optim::AdamOptions(1e-4));
  }

  Tensor step() {
    const std::size_t i = steps_++ % xs_.size();
    adam_->zero_grad();
    const Tensor loss = loss_(xs_[i], ys_[i]);
    loss.backward();
    adam_->step();
    return loss;
  }

  std::string memory() {
    adam_->zero_grad();  // gradients count as the step's
    std::size_t held = 0;
    for (const Tensor& parameter : layers_.parameters()) held += parameter.nbytes();
    for (const auto& [parameter, state] : adam_->state()) {
      const auto& moments = static_cast<const torch::optim::AdamParamState&>(*state);
      held += moments.exp_avg().nbytes() + moments.exp_avg_sq().nbytes();
    }
    const auto peak = std::make_shared<Peak>();
    const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, peak);
    step();
    return R"({"peak_bytes":)" + std::to_string(held + peak->most) + R"(,"held_bytes":)" +
           std::to_string(held) + R"(,"step_bytes":)" + std::to_string(peak->most) + "}";
  }

 private:
  const std::vector<Tensor> xs_, ys_;
  Layers layers_;
  Loss loss_;
  std::unique_ptr<torch::optim::Adam> adam_;
  std::size_t steps_ = 0;
};

void answer(Training& training, const std::string& line) {
  std::istringstream words(line);
  std::string command;
  int steps = 0;
  words >> command >> steps;
  if (command == "run") {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < steps; ++i) training.step();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    std::cout << seconds.count() << std::endl;
  } else if (command == "losses") {
    for (int i = 0; i < steps; ++i)
      std::cout << (i == 0 ? "[" : ",") << training.step().item<float>();
    std::cout << "]" << std::endl;
  } else if (command == "memory") {
    std::cout << training.memory() << std::endl;
  } else {
    throw std::invalid_argument("unknown command '" + line + "'");
  }
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) throw std::invalid_argument("expects MODEL THREADS WEIGHTS");
  at::globalContext().setFlushDenormal(true);  // as ebb does; threads that start later inherit it
  torch::set_num_threads(std::stoi(argv[2]));
  const Weights weights = read(argv[3]);
  Training training(argv[1], weights);
  std::cout << std::setprecision(9) << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) answer(training, line);
} catch (const std::exception& error) {
  std::cerr << "torch_worker: " << error.what() << '\n';
  return 1;
}
