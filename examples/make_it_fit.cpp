// What do I do when training does not fit?
//
// Lower the peak. Each row trains one model for three steps in another way.
#include <cstdio>

#include "ebb/ebb.h"
#include "ebb/examples/common/harness.h"

using namespace ebb;
using namespace ebb::literals;

constexpr std::int64_t kBatch = 1024, kWidth = 256;

struct Way {
  const char* name;
  std::int64_t rows = kBatch;  // of a micro-batch
  bool recomputes = false;
  DType dtype = DType::f32;
  std::size_t budget = 0;  // 0: eager
};

struct Model {
  std::vector<models::Dense> layers;
  bool recomputes;
  Model(const Parameters& p, bool recomputed) : recomputes(recomputed) {
    for (int i = 0; i < 8; ++i)
      layers.emplace_back(p.scope("layer" + std::to_string(i)), kWidth, kWidth);
  }
  Tensor operator()(Tensor x) const {
    for (const models::Dense& dense : layers) {
      const auto layer = [&](const Tensor& in) { return gelu(dense(in)); };
      x = recomputes ? recompute(layer, x) : layer(x);
    }
    return x;
  }
};

Tensor train(const Device& device, const Way& way) {
  set_seed(Seed{1});
  const Parameters params(device, Seed{7}, way.dtype);
  const Model model(params, way.recomputes);
  const Tensor batch = normal({kBatch, kWidth}, {.dtype = way.dtype, .device = device});
  const optim::Accumulator accumulate(optim::Adam(), {.samples = kBatch});
  const auto minimize = [&](const Tensor& x) {
    return accumulate.minimize(mean(square(model(x) - x)), params, rows(x));
  };
  auto compiled = compile(minimize, {.budget = way.budget, .batch = {0}});
  Tensor loss;
  for (int step = 0; step < 3; ++step) {
    loss = Tensor::zeros({}, DType::f32, device);
    for (std::int64_t row = 0; row < kBatch; row += way.rows) {
      const Tensor x = slice(batch, row, row + way.rows);
      loss += cast(way.budget > 0 ? compiled(x) : minimize(x), DType::f32);
    }
  }
  return loss / (kBatch / way.rows);
}

void run(const Device& device) {
  std::printf("%-36s %10s %10s   loss\n", "", "predicted", "peak");
  for (const Way& way : {Way{.name = "eager"}, Way{.name = "compiled", .budget = 1_GiB},
                         Way{.name = "a quarter of the batch, accumulated", .rows = kBatch / 4},
                         Way{.name = "recompute() around each layer", .recomputes = true},
                         Way{.name = "bf16", .dtype = DType::bf16},
                         Way{.name = "compiled, with a budget of 8 MiB", .budget = 8_MiB},
                         Way{.name = "compiled, with a budget of 3 MiB", .budget = 3_MiB}}) {
    const memory::Prediction predicted =
        memory::predict(device, [&](const Device& twin) { train(twin, way); });
    const memory::PeakScope peak(device);
    const Tensor loss = train(device, way);
    std::printf("%-36s %10s %10s %6.4f\n", way.name, memory::figure(predicted.peak_bytes).c_str(),
                memory::figure(peak.bytes()).c_str(),
                device.is_simulated() ? 0 : loss.item<double>());
  }
}

int main(int argc, char** argv) {
  return examples::run_example(argc, argv, "What do I do when training does not fit?", run);
}
