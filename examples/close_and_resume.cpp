// How do I free the GPU between epochs and go on exactly where I was?
//
// Close the session: everything it held goes back to the device. save and restore carry the whole
// state of a training, also in the middle of an epoch: values, moments, counts, random state and
// the loader's position.
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;

struct Model {
  Graph graph;
  Tensor x = graph.placeholder("x", DType::f32, {-1, 64});
  Tensor y = graph.placeholder("y", DType::i32, {-1});
  Parameters params{graph, Seed{7}};
  models::Dense hidden{params.scope("hidden"), 64, 512, Activation::relu};
  models::Dense out{params.scope("out"), 512, 10};
  Tensor loss = softmax_cross_entropy(out(dropout(hidden(x), 0.2, Phase::training)), y);
  Tensor train = optim::Adam({.learning_rate = 1e-3}).minimize(loss, params);
};

// Trains for `steps` steps, in as many epochs as they take.
void train(const Model& model, Session& session, DataLoader& batches, std::size_t steps,
           std::vector<float>& losses) {
  for (const std::size_t end = losses.size() + steps; losses.size() < end;)
    for (auto [x, y] : batches) {
      losses.push_back(session.run(model.train, {{model.x, x}, {model.y, y}}).item<float>());
      if (losses.size() == end) break;
    }
}

int run(const Device& device) {
  const std::string name = "ebb_close_and_resume." + std::to_string(getpid()) + ".safetensors";
  const std::string file = (std::filesystem::temp_directory_path() / name).string();
  const DataSet digits =
      DataSet::csv(EBB_EXAMPLES_DATA "/digits.csv", {.label = "digit"}).scaled(1. / 16);
  const DataLoaderOptions options = {.batch = 64, .shuffle = Seed{1}, .device = device};
  const Model model;

  std::vector<float> straight, resumed;
  {
    Session session(model.graph, {.device = device, .seed = Seed{1}});
    session.initialize(model.params);
    DataLoader batches(digits, options);
    train(model, session, batches, 100, straight);
  }

  std::printf("An epoch has %lld batches. Each line is a session that is closed at its end.\n",
              static_cast<long long>(DataLoader(digits, options).size()));
  for (int part = 0; part < 4; ++part) {
    Session session(model.graph, {.device = device, .seed = Seed{1}});
    DataLoader batches(digits, options);
    if (part == 0)
      session.initialize(model.params);
    else
      session.restore(file, batches);
    train(model, session, batches, 25, resumed);
    session.save(file, batches);
    const memory::CloseReport report = session.close();
    std::printf("steps %3d to %3d: loss %.4f, close() gave %zu bytes back, %zu are held\n",
                25 * part + 1, 25 * part + 25, static_cast<double>(resumed.back()),
                report.returned_bytes, session.stats().reserved.current);
  }
  std::filesystem::remove(file);

  const bool equal = resumed == straight;
  std::printf("100 losses, with dropout: %s\n",
              equal ? "bit for bit those of one session" : "not those of one session");
  return equal ? 0 : 1;
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "How do I free the device and go on?", run);
}
