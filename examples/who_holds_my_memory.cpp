// What is still holding memory, and why is more reserved than I use?
//
// Every block knows the operator, the layer and the source line that asked for it. Reserved memory
// beyond the requests is split into four named causes.
#include <cstdio>
#include <vector>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;

void say_why(const Device& device) {
  const memory::Stats now = memory::stats(device);
  const memory::Fragmentation parts = memory::fragmentation(device);
  const auto line = [](const char* what, std::size_t bytes) {
    std::printf("%-52s %12s\n", what, memory::exact_figure(bytes).c_str());
  };
  line("reserved", now.reserved.current);
  line("  requested", now.requested.current);
  line("  rounding, of blocks to 512 bytes", parts.rounding_bytes);
  line("  rounding, of sessions' blocks to pages", parts.page_rounding_bytes);
  line("  reserved ahead, by sessions that preallocate", parts.reserved_ahead_bytes);
  line("  free in the cache", parts.free_bytes);
  line("    of which pinned, in pages that live blocks use", parts.pinned_bytes);
}

void run(const Device& device) {
  const Parameters params(device, Seed{7});
  const models::Classifier model(params, 784, 10, {.hidden = 512});
  const Tensor x = Tensor::full({1024, 784}, 0.5, DType::f32, device);
  const Tensor y = Tensor::zeros({1024}, DType::i32, device);

  std::vector<Tensor> history;  // the mistake: each of these keeps its tape
  for (int i = 0; i < 5; ++i) history.push_back(softmax_cross_entropy(model(x), y));

  for (const memory::Holder& holder : memory::holders(device, 3))
    std::printf("%-10s in %2zu blocks by %s%s%s, line %u\n", memory::figure(holder.bytes).c_str(),
                holder.blocks, holder.tag.operator_name, *holder.tag.layer ? ", layer " : "",
                holder.tag.layer, holder.tag.line);
  std::printf("\n%s\n", memory::summary(device, 3).c_str());

  for (Tensor& loss : history) loss = loss.detach();  // the remedy
  say_why(device);
  std::printf("%s\n", memory::describe(memory::release_cached(device)).c_str());
  say_why(device);
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "What is still holding memory?", run);
}
