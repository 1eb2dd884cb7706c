// Makes whole training steps on request. benchmarks/run.py and gpu.py start it, beside PyTorch's
// torch_worker.py. Reads commands from the standard input, a line each, and answers each with a
// line:
//   run N       makes N steps and waits for the last; answers the seconds that took
//   losses N    makes N more steps and answers their losses
//   memory      makes one more step; {"peak_bytes": ..., "held_bytes": ..., "step_bytes": ...}
//   operations  floating-point operations in the matrix products of a step
//   operators   number of operators in a step (graph mode), all updates counted as one
// Beside the three modes it offers the parts that bound a step, each with "run" alone:
//   products  the matrix products of a step, on operands made beforehand
//   fastest   one large product instead, for the machine's rate
//   stream    Adam's traffic in host memory: reads four arrays and writes three
//   copy      a copy in the device's memory
//   launch    an operator on four floats
// With --ranks it is one of several processes that MPI has started. Each hears all commands, and
// rank 0 answers.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdint>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "ebb/benchmarks/steps/bounds.h"
#include "ebb/benchmarks/steps/models.h"
#include "ebb/benchmarks/steps/training.h"
#include "ebb/core/base/error.h"
#include "ebb/core/kernels/tf32.h"
#include "ebb/core/kernels/workers.h"
#include "ebb/core/ops/shape.h"

namespace {

using namespace ebb;
using namespace ebb::benchmarks;

const std::map<std::string, Model (*)(const InputFile&)> kModels = {
    {"mlp", make_mlp}, {"lstm", make_lstm}, {"gpt", make_gpt}, {"resnet", make_resnet}};

struct Options {
  std::string model = "mlp", mode, weights;
  std::string device = "cpu", precision = "f32";
  std::int64_t size = 1024;
  int threads = 1;
  bool ranks = false, shares = false;
};

std::unique_ptr<Worker> make_worker(const Options& options,
                                    const std::optional<distributed::World>& world, Model& model) {
  const Device device = Device::parse(options.device);
  if (options.mode == "copy") return std::make_unique<DeviceCopy>(options.size, device);
  if (options.mode == "launch") return std::make_unique<TinyOperator>(device);
  if (options.mode == "fastest") {
    model = make_square(options.size);
    return std::make_unique<Products>(model, device,
                                      options.precision == "bf16" ? DType::bf16 : DType::f32);
  }
  const InputFile input(options.weights, world);
  model = kModels.at(options.model)(input);
  if (options.mode == "graph") return std::make_unique<GraphTraining>(model, input, device);
  if (options.mode == "eager") return std::make_unique<EagerTraining>(model, input, device);
  if (options.mode == "compiled") return std::make_unique<CompiledTraining>(model, input, device);
  if (options.mode == "products") return std::make_unique<Products>(model, device, input.dtype());
  return std::make_unique<Bandwidth>(model);
}

double seconds_of(Worker& worker, std::int64_t steps) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  Tensor last;
  for (std::int64_t i = 0; i < steps; ++i) last = worker.step();
  if (last.defined()) value_of(reshape(last, {-1}), {0});
  return std::chrono::duration<double>(Clock::now() - start).count();
}

nlohmann::ordered_json answer(Worker& worker, const Model& model, const std::string& line) {
  std::istringstream words(line);
  std::string command;
  std::int64_t steps = 0;
  words >> command;
  if (command == "run" && words >> steps) return seconds_of(worker, steps);
  if (command == "operations") return model.operations();
  if (auto* training = dynamic_cast<Training*>(&worker)) {
    if (command == "memory") return training->memory();
    if (command == "losses" && words >> steps) {
      std::vector<float> losses;
      for (std::int64_t i = 0; i < steps; ++i) losses.push_back(value_of(worker.step()));
      return losses;
    }
  }
  if (auto* training = dynamic_cast<GraphTraining*>(&worker); training && command == "operators")
    return training->operators();
  throw Error("unknown command '" + line + "'");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Makes training steps for benchmarks/run.py and benchmarks/gpu.py.");
  Options options;
  const std::vector<std::string> modes = {"graph",   "eager",  "compiled", "products",
                                          "fastest", "stream", "copy",     "launch"};
  const std::vector<std::string> precisions = {"f32", "tf32", "bf16"};
  app.add_flag_callback(
      "--precisions",
      [&] {
        for (const std::string& precision : precisions) std::cout << precision << '\n';
        throw CLI::Success();
      },
      "lists what products are computed in");
  app.add_option("--model", options.model)->check(CLI::IsMember(kModels));
  app.add_option("--mode", options.mode)->required()->check(CLI::IsMember(modes));
  app.add_option("--device", options.device, "cpu, cuda or cuda:1");
  app.add_option("--precision", options.precision)->check(CLI::IsMember(precisions));
  app.add_option("--threads", options.threads)->check(CLI::PositiveNumber);
  app.add_option("--weights", options.weights, "safetensors file of weights and batches");
  app.add_option("--size", options.size, "of fastest, the side of its matrices; of copy, floats")
      ->check(CLI::PositiveNumber);
  app.add_flag("--ranks", options.ranks, "a rank of an MPI job, with its part of every batch");
  app.add_flag("--shares", options.shares,
               "ranks have shares of parameters, gradients and moments");
  CLI11_PARSE(app, argc, argv);
  try {
    Workers::instance().set_threads(options.threads);
    flush_denormals_on_this_thread();
    allow_tf32(options.precision == "tf32");
    using distributed::Sharding, distributed::World;
    const auto sharding = options.shares ? Sharding::parameters : Sharding::none;
    const auto world = options.ranks ? std::optional(World({.sharding = sharding})) : std::nullopt;
    if (world && world->rank() > 0) std::cout.setstate(std::ios::failbit);
    Model model;
    const std::unique_ptr<Worker> worker = make_worker(options, world, model);
    std::cout << "ready" << std::endl;
    for (std::string line; std::getline(std::cin, line);)
      std::cout << answer(*worker, model, line).dump() << std::endl;
  } catch (const std::exception& error) {
    std::cerr << "step_worker: " << error.what() << '\n';
    return 1;
  }
}
