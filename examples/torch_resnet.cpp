// Runs a ResNet with weights and running statistics from PyTorch, as a compiled step.
//
// torch_models.py wrote the file: a small ResNet with the names of torchvision's, and what it
// computes. Scopes have the same names here, so that a rule for all of it is enough.
#include <cstdio>
#include <optional>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;

constexpr const char* kFile = EBB_EXAMPLES_DATA "/torch_resnet.safetensors";

const std::vector<TorchRule> kRules = {{"", ""}, {"expected", {}, TorchLayer::ignored}};

// A convolution that keeps the size but for its stride, and the norm after it.
struct Conv {
  models::Conv2d conv;
  models::BatchNorm norm;
  Conv(const Parameters& p, const char* name, const char* norm_name, std::int64_t in,
       std::int64_t out, std::int64_t kernel, std::int64_t stride)
      : conv(p.scope(name), in, out,
             {.kernel = kernel, .stride = stride, .padding = kernel / 2, .bias = false}),
        norm(p.scope(norm_name), out) {}
  Tensor operator()(const Tensor& x) const { return norm(conv(x)); }
};

struct BasicBlock {
  Conv first, second;
  std::optional<Conv> downsample;
  BasicBlock(const Parameters& p, std::int64_t in, std::int64_t out, std::int64_t stride)
      : first(p, "conv1", "bn1", in, out, 3, stride), second(p, "conv2", "bn2", out, out, 3, 1) {
    if (stride != 1) downsample.emplace(p, "downsample.0", "downsample.1", in, out, 1, stride);
  }
  Tensor operator()(const Tensor& x) const {
    return relu(second(relu(first(x))) + (downsample ? (*downsample)(x) : x));
  }
};

struct ResNet {
  Conv stem;
  BasicBlock layer1, layer2;
  models::Dense fc;
  explicit ResNet(const Parameters& p)
      : stem(p, "conv1", "bn1", 3, 8, 7, 2),
        layer1(p.scope("layer1.0"), 8, 8, 1),
        layer2(p.scope("layer2.0"), 8, 16, 2),
        fc(p.scope("fc"), 16, 10) {}
  // Images [batch, 3, height, width] to scores [batch, 10].
  Tensor operator()(const Tensor& images) const {
    const Tensor x = max_pool2d(relu(stem(images)), {.kernel = 3, .stride = 2, .padding = 1});
    return fc(mean(layer2(layer1(x)), {.axes = {2, 3}}));
  }
};

int run(const Device& device) {
  const TensorsByName theirs = load_safetensors(kFile);
  const Parameters shapes(device.twin());
  const ResNet shaped(shapes);
  std::printf("%s", torch_mapping(shapes, kFile, kRules).c_str());
  const auto compute = [&](const examples::Arguments& told) {
    const Parameters params(told.device);
    const ResNet model(params);
    load_torch(params, kFile, kRules);
    auto step = compile([&](const Tensor& images) {
      const NoGrad no_grad;
      return model(images);
    });
    return step(load_safetensors(kFile, told.device).at("expected.images"));
  };
  const Tensor scores = examples::run_predicted({.device = device}, compute);
  return examples::agrees("scores", scores, theirs.at("expected.scores")) ? 0 : 1;
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "Runs a ResNet with weights from PyTorch.", run);
}
