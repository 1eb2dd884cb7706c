// How do I lend the device to another program for a while, and go on where I was?
//
// suspend() moves the session's values to the host, or to a file, and gives everything back. After
// resume() prepared steps are still valid, and the losses are the same as without interruption.
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;
using namespace ebb::literals;

struct Model {
  Graph graph;
  Tensor x = graph.placeholder("x", DType::f32, {-1, 784});
  Tensor y = graph.placeholder("y", DType::i32, {-1});
  Parameters params{graph, Seed{7}};
  models::Dense hidden{params.scope("hidden"), 784, 512, Activation::relu};
  models::Dense out{params.scope("out"), 512, 10};
  Tensor loss = softmax_cross_entropy(out(dropout(hidden(x), 0.2, Phase::training)), y);
  Tensor train = optim::Adam().minimize(loss, params);
};

void show(const char* moment, const Device& device) {
  std::printf("%-34s %10s reserved, %10s to be had\n", moment,
              memory::figure(memory::stats(device).reserved.current).c_str(),
              memory::figure(memory::available(device)).c_str());
}

// A step of another, eager program, which takes some 22 MiB.
void guest(const Device& device) {
  try {
    const Parameters params(device, Seed{8});
    const models::Mlp model(params, {784, 1536, 784});
    const Tensor x = Tensor::full({64, 784}, 0.5, DType::f32, device);
    mse(model(x), x).backward();
    show("a guest, at work", device);
  } catch (const OutOfMemory&) {
    std::printf("no room for a guest\n");
  }
  memory::release_cached(device);
}

// Losses of ten steps; lend() is called in the middle.
template <class Lend>
Tensor train(const Model& model, const Device& device, const Lend& lend) {
  Session session(model.graph, {.device = device, .seed = Seed{1}});
  session.initialize(model.params);
  PreparedStep step = session.prepare(model.train, {model.x, model.y});
  const Tensor images = Tensor::full({128, 784}, 0.5, DType::f32, device);
  const Tensor labels = Tensor::zeros({128}, DType::i32, device);
  Tensors losses;
  for (int i = 0; i < 10; ++i) {
    if (i == 5) lend(session);
    losses.push_back(step(images, labels));
  }
  return stack(losses);
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "How do I lend the device?", [](const Device& device) {
    memory::set_limit(device, 24_MiB);
    const Model model;
    const Tensor straight = train(model, device, [](Session&) {});
    const Tensor lent = train(model, device, [&](Session& session) {
      show("the session has trained", device);
      guest(device);
      session.suspend();
      show("suspended", device);
      guest(device);
      session.resume();
      show("resumed", device);
    });
    const bool equal = lent.to_vector<float>() == straight.to_vector<float>();
    std::printf("losses as though nothing had been: %s\n", equal ? "yes" : "no");
    return equal ? 0 : 1;
  });
}
