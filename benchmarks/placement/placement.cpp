// How tight placements are, over the most bytes alive at once: training steps of the four usual
// models and of random CNNs, rectangles that were cut or stacked so that a placement without gaps
// exists, sets that are hard for simple orders, and a million buffers.
//
//   benchmark_placement [--only training packings million] [--networks N]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "ebb/benchmarks/budget/models.h"
#include "ebb/ebb.h"

namespace {

using namespace ebb;
using memory::Lifetime;
using Random = std::mt19937;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::size_t draw(Random& random, std::size_t low, std::size_t high) {
  return low + random() % (high - low + 1);
}

double ratio(std::size_t bytes, std::size_t of) {
  return static_cast<double>(bytes) / static_cast<double>(of);
}

// Arena of a plan, and what a search with a hundred times the steps makes of the same buffers.
struct Training {
  double planned, longer;
  std::size_t nodes;
  double seconds;
};

Training plan(const Step& step, const Device& device) {
  const double start = now();
  const memory::Plan plan = step.plan(device, {.details = true});
  const double seconds = now() - start;
  std::vector<Lifetime> buffers;
  for (const auto& b : plan.details->buffers) buffers.push_back({b.first, b.last + 1, b.bytes});
  const std::size_t bound = memory::place(buffers, {.steps = 0}).lower_bound_bytes;
  std::size_t longer = plan.arena_bytes;
  if (longer > bound)
    longer = std::min(
        longer,
        memory::place(buffers, {.steps = 200'000 * std::min<std::size_t>(buffers.size(), 1000)})
            .total_bytes);
  return {ratio(plan.arena_bytes, bound), ratio(longer, bound), plan.nodes, seconds};
}

void report_model(const char* name, Model (*make)(const Parameters&, int), int layers,
                  const Device& device) {
  const Step step([&](const Parameters& params) { return make(params, layers); });
  const Training t = plan(step, device);
  std::printf("%-8s %6d layers %7zu nodes   x %.4f   x %.4f  %7.2f s\n", name, layers, t.nodes,
              t.planned, t.longer, t.seconds);
}

// A CNN of random depth, widths, kernels, strides, norms, pools and shortcuts.
Model make_cnn(const Parameters& params, std::uint32_t seed) {
  const auto pick = [random = std::make_shared<Random>(seed)](std::size_t low, std::size_t high) {
    return static_cast<std::int64_t>(draw(*random, low, high));
  };
  const std::int64_t batch = pick(1, 32);
  const std::int64_t in = pick(1, 4), size = pick(16, 64);
  const auto loss = [=](Tensor x, const Tensor& y_true, int) {
    std::int64_t channels = in, side = size;
    const std::int64_t layers = pick(2, 16);
    for (std::int64_t i = 0; i < layers; ++i) {
      const Parameters scope = params.scope("layer" + std::to_string(i));
      const std::int64_t kernel = 2 * pick(0, 2) + 1;
      const bool shortcut = i > 0 && pick(0, 2) == 0;
      const std::int64_t stride = !shortcut && side >= 8 && pick(0, 3) == 0 ? 2 : 1;
      const std::int64_t out = shortcut ? channels : pick(4, 64);
      const models::Conv2d conv(scope, channels, out,
                                {.kernel = kernel, .stride = stride, .padding = kernel / 2});
      Tensor y = conv(x);
      if (pick(0, 1)) y = models::BatchNorm(scope.scope("norm"), out)(y, Phase::training);
      x = relu(shortcut ? x + y : y);
      if (x.shape()[2] >= 8 && pick(0, 4) == 0) x = max_pool2d(x, 2);
      channels = out;
      side = x.shape()[2];
    }
    const models::Dense dense(params.scope("out"), channels, 10);
    return softmax_cross_entropy(dense(mean(x, {.axes = {2, 3}})), y_true);
  };
  return {{DType::f32, {batch, in, size, size}}, {DType::i32, {batch}}, loss};
}

void report_training(std::uint32_t networks) {
  const Device cpu = Device::simulated("cpu", std::size_t{1} << 40);
  const Device h200 = Device::simulated("h200", std::size_t{1} << 40);
  for (const Device& device : {cpu, h200}) {
    std::printf("%-37s   planned    100 steps for 1  plan\n",
                device == cpu ? "cpu" : "h200, simulated");
    for (const int layers : {2, 12, 48}) {
      report_model("mlp", make_mlp, layers, device);
      report_model("lstm", make_lstm, layers, device);
      report_model("gpt", make_gpt, layers, device);
      report_model("resnet", make_resnet, layers, device);
    }
    report_model("mlp", make_mlp, 600, device);
    report_model("gpt", make_gpt, 100, device);
    report_model("resnet", make_resnet, 300, device);

    std::vector<double> planned, over;
    for (std::uint32_t seed = 0; seed < networks; ++seed) {
      const Step step([&](const Parameters& params) { return make_cnn(params, seed); });
      const Training t = plan(step, device);
      planned.push_back(t.planned);
      over.push_back(t.planned / t.longer);
    }
    std::sort(planned.begin(), planned.end());
    const auto at_bound = std::count(planned.begin(), planned.end(), 1.0);
    std::printf(
        "%u random CNNs: %d at the bound, 95th percentile x %.4f, worst x %.4f;\n"
        "  over the longer search at most x %.4f\n",
        networks, static_cast<int>(at_bound), planned[planned.size() * 95 / 100], planned.back(),
        *std::max_element(over.begin(), over.end()));
  }
}

// A rectangle cut at random by straight lines.
std::vector<Lifetime> cut(std::size_t pieces, std::size_t steps) {
  Random random(static_cast<std::uint32_t>(pieces + steps));
  std::vector<Lifetime> all = {{0, steps, 1 << 24}};
  while (all.size() < pieces) {
    Lifetime& piece = all[random() % all.size()];
    Lifetime rest = piece;
    if (random() % 2) {
      if (piece.end - piece.first < 2) continue;
      piece.end = rest.first = draw(random, piece.first + 1, piece.end - 1);
    } else {
      if (piece.bytes < 2) continue;
      piece.bytes = draw(random, 1, piece.bytes - 1);
      rest.bytes -= piece.bytes;
    }
    all.push_back(rest);
  }
  std::shuffle(all.begin(), all.end(), random);
  return all;
}

// A stack of pieces in which a run of up to `run` neighbours is replaced by another division of its
// bytes, again and again. No straight cut divides it.
std::vector<Lifetime> stack_of(std::size_t pieces, std::size_t layers, std::size_t run) {
  struct Piece {
    std::size_t first, bytes;
  };
  Random random(static_cast<std::uint32_t>(pieces + layers));
  std::vector<Piece> alive;
  for (std::size_t i = 0; i < layers; ++i) alive.push_back({0, draw(random, 1, 100'000)});
  std::vector<Lifetime> all;
  std::size_t step = 0;
  while (all.size() + alive.size() < pieces) {
    step += draw(random, 1, 20);
    const std::size_t from = random() % alive.size();
    const std::size_t to = std::min(alive.size(), from + draw(random, 1, run));
    std::size_t bytes = 0;
    for (std::size_t i = from; i < to; ++i) {
      all.push_back({alive[i].first, step, alive[i].bytes});
      bytes += alive[i].bytes;
    }
    std::vector<Piece> made;
    for (std::size_t left = draw(random, 1, run); left > 1 && bytes > 1; --left) {
      made.push_back({step, draw(random, 1, bytes - 1)});
      bytes -= made.back().bytes;
    }
    made.push_back({step, bytes});
    const auto begin = alive.begin() + static_cast<std::ptrdiff_t>(from);
    alive.erase(begin, alive.begin() + static_cast<std::ptrdiff_t>(to));
    alive.insert(alive.begin() + static_cast<std::ptrdiff_t>(from), made.begin(), made.end());
  }
  for (const Piece& piece : alive) all.push_back({piece.first, step + 1, piece.bytes});
  std::shuffle(all.begin(), all.end(), random);
  return all;
}

// Rings of five rectangles around each other, each divided in the same way.
void pinwheel(Random& random, const Lifetime& whole, std::size_t pieces,
              std::vector<Lifetime>& all) {
  const std::size_t steps = whole.end - whole.first;
  if (pieces < 5 || steps < 4 || whole.bytes < 4) {
    all.push_back(whole);
    return;
  }
  const std::size_t left = draw(random, 1, steps - 2), right = draw(random, left + 1, steps - 1);
  const std::size_t low = draw(random, 1, whole.bytes - 2);
  const std::size_t high = draw(random, low + 1, whole.bytes - 1);
  const std::size_t a = whole.first, b = a + left, c = a + right, d = whole.end;
  for (const Lifetime& part :
       {Lifetime{a, c, low}, Lifetime{c, d, high}, Lifetime{b, d, whole.bytes - high},
        Lifetime{a, b, whole.bytes - low}, Lifetime{b, c, high - low}})
    pinwheel(random, part, pieces / 5, all);
}

// Large buffers that meet for a moment, each leaving a small one that stays.
std::vector<Lifetime> comb(std::size_t teeth) {
  Random random(1);
  std::vector<Lifetime> all;
  for (std::size_t i = 0; i < teeth; ++i) {
    const std::size_t large = 1000 + i * 37 % teeth * 10;
    all.push_back({2 * i, 2 * i + 3, large});
    all.push_back({2 * i + 1, 4 * teeth - i % 7, draw(random, 1, 64)});
    all.push_back({2 * i + 2, 2 * i + 5, large / 2 + draw(random, 0, 100)});
  }
  return all;
}

// Sizes and lives over orders of magnitude.
std::vector<Lifetime> loose(std::size_t count) {
  Random random(1);
  const auto wide = [&](double most) {
    return 1 + static_cast<std::size_t>(
                   std::exp2(static_cast<double>(random() % 1000) / 1000 * std::log2(most)));
  };
  std::vector<Lifetime> all;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t first = draw(random, 0, count);
    all.push_back({first, first + wide(static_cast<double>(count)), wide(1 << 20)});
  }
  return all;
}

std::vector<Lifetime> random_lives(std::size_t count, std::size_t steps, std::size_t longest) {
  Random random(1);
  std::vector<Lifetime> all;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t first = draw(random, 0, steps - 1);
    all.push_back({first, first + draw(random, 1, longest), draw(random, 1, 100'000)});
  }
  return all;
}

void report(const char* name, const std::vector<Lifetime>& buffers,
            const memory::PlaceOptions& options = {}) {
  const double start = now();
  const memory::Placement placed = memory::place(buffers, options);
  std::printf("%-32s %8zu buffers   x %.4f  %7.2f s\n", name, buffers.size(),
              ratio(placed.total_bytes, placed.lower_bound_bytes), now() - start);
  std::fflush(stdout);
}

void report_packings() {
  for (const std::size_t pieces : {300, 1000, 3000}) {
    report("cut at random", cut(pieces, 100'000));
    report("cut at random, 500 steps", cut(pieces, 500));
    report("cut at random, 50 steps", cut(pieces, 50));
    report("stack of 20", stack_of(pieces, 20, 3));
    report("stack of 60", stack_of(pieces, 60, 3));
    report("stack of 100, long runs", stack_of(pieces, 100, 8));
    Random random(static_cast<std::uint32_t>(pieces));
    std::vector<Lifetime> rings;
    pinwheel(random, {0, 1'000'000, 1 << 24}, pieces, rings);
    report("rings in rings", rings);
    report("comb", comb(pieces / 3));
    report("loose", loose(pieces));
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("How tight placements are, over the most bytes alive at once");
  std::vector<std::string> only{"training", "packings", "million"};
  std::uint32_t networks = 300;
  app.add_option("--only", only, "parts to run");
  app.add_option("--networks", networks, "random CNNs");
  CLI11_PARSE(app, argc, argv);
  const auto runs = [&](const char* part) {
    return std::find(only.begin(), only.end(), part) != only.end();
  };
  if (runs("training")) report_training(networks);
  if (runs("packings")) report_packings();
  if (runs("million")) {
    report("few alive at once", random_lives(1'000'000, 1'000'000, 8), {.steps = 0});
    report("500 at once", random_lives(1'000'000, 1'000'000, 1000), {.steps = 0});
    report("500,000 at once", random_lives(1'000'000, 1000, 1000), {.steps = 0});
  }
}
