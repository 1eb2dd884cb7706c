// Does closing a session give its memory back while the process lives?
//
// Yes, every byte. Dropping the graph does not: it describes the program, the session holds the
// memory. Fetched tensors belong to the caller, and cached memory goes back when asked for.
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;

void show(const char* moment, const Device& device) {
  const memory::Stats now = memory::stats(device);
  std::printf("%-46s %12s %12s\n", moment, memory::figure(now.allocated.current).c_str(),
              memory::figure(now.reserved.current).c_str());
}

Session train(const Device& device, Tensor& loss) {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 784});
  const Tensor y = graph.placeholder("y", DType::i32, {-1});
  const Parameters params(graph, Seed{7});
  const models::Classifier model(params, 784, 10, {.hidden = 512});
  const Tensor step = optim::Adam().minimize(softmax_cross_entropy(model(x), y), params);

  Session session(graph, {.device = device});
  session.initialize(params);
  const Tensor images = Tensor::full({128, 784}, 0.5, DType::f32, device);
  const Tensor labels = Tensor::zeros({128}, DType::i32, device);
  for (int i = 0; i < 10; ++i) loss = session.run(step, {{x, images}, {y, labels}});
  return session;
}  // the graph, its tensors and parameters go here

int run(const Device& device) {
  std::printf("%-46s %12s %12s\n", "", "allocated", "reserved");
  show("at the start", device);
  {
    Tensor loss;
    Session session = train(device, loss);
    show("trained; the graph is gone, the session holds", device);
    const memory::CloseReport report = session.close();
    show("closed; the loss that was fetched is ours", device);
    std::printf("  close() freed %zu blocks of %s and returned %s\n", report.freed_blocks,
                memory::figure(report.freed_bytes).c_str(),
                memory::figure(report.returned_bytes).c_str());
  }
  show("the loss is gone; its page is cached", device);
  const memory::ReleaseReport released = memory::release_cached(device);
  show("the cache is released", device);
  std::printf("  %s\n", memory::describe(released).c_str());

  for (int i = 0; i < 100; ++i) {
    Tensor loss;
    const Session session = train(device, loss);
  }  // the end of the scope closes, too
  memory::release_cached(device);
  show("after a hundred more sessions", device);
  return memory::stats(device).reserved.current == 0 ? 0 : 1;
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "Does closing a session give memory back?", run);
}
