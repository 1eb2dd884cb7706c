// When is the memory of an eager program free?
//
// When the last handle to a tensor goes, at that point of the program: nothing collects later. The
// backward pass frees the tape as it goes, and a loss that is kept then holds only itself.
#include <cstdio>
#include <vector>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;

void show(const char* moment, const Device& device) {
  const memory::Stats now = memory::stats(device);
  const auto held = [&](memory::Category category) {
    return memory::figure(now.by_category[static_cast<std::size_t>(category)].current);
  };
  using memory::Category;
  std::printf("%-29s %10s %10s %10s %10s\n", moment, memory::figure(now.allocated.current).c_str(),
              held(Category::parameter).c_str(), held(Category::gradient).c_str(),
              held(Category::activation).c_str());
}

int run(const Device& device) {
  std::printf("%-29s %10s %10s %10s %10s\n", "", "allocated", "parameter", "gradient",
              "activation");
  const std::size_t start = memory::stats(device).allocated.current;
  {
    const Parameters params(device, Seed{7});
    const models::Classifier model(params, 784, 10, {.hidden = 512});
    const optim::Adam adam;
    const Tensor x = Tensor::full({1024, 784}, 0.5, DType::f32, device);
    const Tensor y = Tensor::zeros({1024}, DType::i32, device);
    show("model and batch", device);

    std::vector<Tensor> losses;
    {
      const Tensor loss = softmax_cross_entropy(model(x), y);
      show("after the forward pass", device);
      loss.backward();
      show("after backward()", device);
      adam.step(params);
      show("after step(), with moments", device);
      params.zero_grad();
      show("after zero_grad()", device);
      losses.push_back(loss);
    }
    for (int i = 1; i < 1000; ++i)
      losses.push_back(
          adam.minimize(softmax_cross_entropy(model(slice(x, 0, 1)), slice(y, 0, 1)), params));
    show("a thousand losses are kept", device);
    losses.clear();
    show("and dropped", device);

    // Without backward() the tape lives as long as its loss: detach() or NoGrad leave it out.
    losses.push_back(softmax_cross_entropy(model(x), y));
    show("a loss with its tape", device);
    losses[0] = losses[0].detach();
    show("the same, detached", device);
  }
  show("the scope is left", device);
  return memory::stats(device).allocated.current == start ? 0 : 1;
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "When is the memory of an eager program free?", run);
}
