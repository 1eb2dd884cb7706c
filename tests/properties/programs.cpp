// Hundreds of random training programs: the two executors agree, plans and twins are exact, no
// bytes are left.
#include <algorithm>
#include <cstring>
#include <random>

#include "ebb/core/device/runtime.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/poisoned.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/graph/onnx_writer.h"
#include "ebb/tests/in_mode.h"
#include "ebb/tests/optim/rules.h"
#include "ebb/tests/properties/check_plan.h"
#include "ebb/tests/properties/stateful_machine.h"

namespace ebb::tests {
namespace {

// An emulated GPU takes ten times as long.
std::uint64_t program_count() { return runs_take_long() ? 75 : 300; }
constexpr int kSteps = 4, kTargets = 3;

class Drawn {
 public:
  explicit Drawn(std::uint64_t seed) : random_(seed) {}
  int number(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }
  const Tensor& any(const Tensors& of) {
    return of[static_cast<std::size_t>(number(0, static_cast<int>(of.size()) - 1))];
  }

 private:
  std::mt19937_64 random_;
};

// Makes a value [batch, width] of earlier ones. `weight` declares a parameter.
template <class Weight>
Tensor draw_value(Drawn& drawn, const Tensors& values, const Weight& weight) {
  // Mostly of the last value, so that programs are deep; sometimes of any, so that values are
  // shared.
  const Tensor a = drawn.number(0, 2) ? values.back() : drawn.any(values);
  const std::int64_t in = a.size(1);
  const int kind = drawn.number(0, 10), variant = drawn.number(0, 1000);
  const std::int64_t out = drawn.number(1, 40);
  switch (kind) {
    case 0:
      return dense(a, weight({in, out}), weight({out}), static_cast<Activation>(variant % 4));
    case 1:
      return variant % 2 ? matmul(a, weight({out, in}), {.transpose_b = true})
                         : matmul(a, weight({in, out}));
    case 2:
      return compute({.kind = Line::unary, .variant = variant}, a, {});
    case 3:
      return compute({.kind = Line::number, .variant = variant, .constant = 0.75}, a, {});
    case 4: {
      Tensors fitting;
      for (const Tensor& value : values)
        if (value.size(1) == in) fitting.push_back(value);
      const Tensor& b = drawn.any(fitting);
      if (variant % 4 == 2) return tanh(a) * tanh(b);  // does not explode
      return compute({.kind = Line::binary, .variant = variant}, a, b);
    }
    case 5:
      return variant % 2 ? a * weight({in}) : weight({in}) - a;
    case 6: {
      const ReduceOptions options{.axes = {variant % 2}, .keep = true};
      return variant % 4 < 2 ? a / (mean(square(a), options) + 1) : a - sum(a, options) * 0.1;
    }
    case 7:
      return variant % 2 ? reshape(reshape(a, {-1, in, 1}), {-1, in})
                         : last_step(reshape(a, {-1, 1, in}));
    case 8: {
      const std::int64_t hidden = drawn.number(1, 9);
      std::vector<LstmWeights> layers;
      for (int layer = 0; layer <= variant % 2; ++layer)
        layers.push_back({weight({layer ? hidden : 1, 4 * hidden}), weight({hidden, 4 * hidden}),
                          weight({4 * hidden})});
      const LstmResult result = lstm(reshape(a, {-1, in, 1}), layers);
      return variant % 3 ? last_step(result.sequence)
                         : select(result.hidden, 0, 0) + select(result.cell, 0, -1);
    }
    case 9: {
      const Tensor w = weight({in, out}), bias = weight({out});
      return recompute([w, bias](const Tensor& x) { return tanh(dense(x, w, bias) * 0.5); }, a);
    }
    default:
      switch (variant % 6) {
        case 0:
          return transpose(transpose(a) * 0.5);
        case 1: {
          const Tensors parts = split(a, {in / 2, -1}, 1);
          return concat({parts[1], parts[0]}, 1);
        }
        case 2:
          return flip(a, {variant / 6 % 2}) * 0.5;
        case 3:
          return slice(slice(pad(a, {{1, 0}, {0, 2}}, 0.5), 1), 0, -2, {.axis = 1});
        case 4:
          return mean(stack({a, tanh(a)}, 1), {.axes = {1}});
        default:
          return slice(repeat(a, 2, 1), 0, kEnd, {.axis = 1, .step = 2});
      }
  }
}

std::vector<optim::Optimizer> optimizers(DType dtype) {
  return {optim::Sgd({.learning_rate = 0.05}),
          optim::Sgd(
              {.learning_rate = 0.05, .momentum = 0.9, .nesterov = true, .clip = {.value = 0.1}}),
          optim::Adam({.learning_rate = optim::cosine(1e-2, {.warm_up = 2, .steps = 10}),
                       .state_dtype = dtype == DType::f32 ? DType::f64 : DType::f32}),
          optim::AdamW({.learning_rate = 1e-2, .clip = {.global_norm = 0.1}}),
          optim::Rmsprop(
              {.learning_rate = 1e-3, .momentum = 0.9, .centered = true, .clip = {.norm = 0.1}}),
          optim::Adagrad({.learning_rate = 1e-2}),
          optim::Lion({.learning_rate = 1e-3, .weight_decay = 0.1, .decay_only = optim::is_matrix}),
          optim::Optimizer(std::make_shared<OwnAdam>(), 1e-2, {}, {.norm = 0.1})};
}

// A training program; all of it is drawn from its seed.
struct TrainingProgram {
  explicit TrainingProgram(std::uint64_t drawn_from) : seed(drawn_from) {
    Drawn drawn(seed);
    batch = drawn.number(1, 33);
    smaller_batch = drawn.number(1, static_cast<int>(batch));
    in = drawn.number(1, 24);
    constexpr DType kDTypes[] = {DType::f32, DType::f32, DType::f32, DType::f16, DType::bf16};
    dtype = kDTypes[drawn.number(0, 4)];
  }

  // Trains a model, whose weights the first call declares; returns the loss.
  Tensor train(const Tensor& x, const Tensor& y, const Parameters& parameters) const {
    Drawn drawn(seed + 1);
    int weights = 0;
    const auto weight = [&](const Shape& shape) {
      const std::string name =
          std::string(weights % 2 ? "a" : "b") + ".w" + std::to_string(weights);
      ++weights;
      return parameters.contains(name)
                 ? parameters[name]
                 : parameters.declare(name, shape, initializers::uniform(-0.4, 0.4));
    };
    Tensors values{x};
    for (int left = drawn.number(1, 12); left > 0; --left)
      values.push_back(draw_value(drawn, values, weight));
    // The loss depends on a parameter of either scope.
    const Tensor last = values.back() * weight({1});
    const Tensor scores = matmul(last, weight({last.size(1), kTargets}));
    const Tensor loss =
        drawn.number(0, 1) ? softmax_cross_entropy(scores, y) : mean(square(tanh(scores) - 0.25));
    const bool accumulates = drawn.number(0, 3) == 0;
    const optim::AccumulatorOptions every_second{.samples = 2 * batch};
    const std::vector<optim::Optimizer> all = optimizers(dtype);
    const auto any = [&] { return all[static_cast<std::size_t>(drawn.number(0, 7))]; };
    if (drawn.number(0, 2) == 0) {
      const optim::Optimizer first = any(), second = any();
      const std::vector<optim::ParameterGroup> groups = {{parameters.scope("a"), first},
                                                         {parameters.scope("b"), second}};
      return accumulates ? optim::GroupAccumulator(groups, every_second).minimize(loss, rows(y))
                         : optim::minimize(loss, groups);
    }
    return accumulates ? optim::Accumulator(any(), every_second).minimize(loss, parameters, rows(y))
                       : any().minimize(loss, parameters);
  }

  // Inputs and targets of a step.
  Tensors samples(int step, const Device& device) const {
    const std::int64_t rows = step % 3 == 2 ? smaller_batch : batch;
    Drawn drawn(seed + static_cast<std::uint64_t>(step));
    std::vector<float> x(static_cast<std::size_t>(rows * in));
    for (float& value : x) value = static_cast<float>(drawn.number(-100, 100)) / 100;
    std::vector<std::int32_t> y(static_cast<std::size_t>(rows));
    for (std::int32_t& label : y) label = drawn.number(0, kTargets - 1);
    return {cast(Tensor::from(x, {rows, in}, device), dtype), Tensor::from(y, {rows}, device)};
  }

  // Bytes of the slots that a device reads a step's inputs from, and of its loss before that is
  // copied; none where it reads and writes them in place.
  std::size_t bytes_of_copies(const Device& device) const {
    const memory::Profile& profile = device.runtime().profile();
    if (!profile.captures_programs) return 0;
    std::size_t bytes = profile.rounded(sizeof(float));
    for (const Tensor& each : samples(0, device)) bytes += profile.rounded(each.bytes());
    return bytes;
  }

  // Planning for the least budget takes longer than the program.
  bool takes_budgets() const noexcept { return seed % 12 == 0; }

  std::uint64_t seed;
  std::int64_t batch, smaller_batch, in;
  DType dtype;
};

// Results of a program, none on a simulated device, and bytes.
struct Trained {
  std::vector<double> values;  // losses, parameters, slots
  std::size_t training_peak_bytes = 0, peak_bytes = 0, total_bytes = 0, left_bytes = 0;
  std::size_t least_budget = 0, page_locked_bytes = 0;
  memory::Plan plan;
  memory::Stats session;
};

Trained train(const TrainingProgram& program, const Device& device, InMode::Kind kind,
              bool passes = true, std::optional<memory::Limit> budget = {}) {
  Trained outcome;
  const bool as_graph = kind == InMode::graph;
  const Bytes bytes(device);
  const std::size_t before = memory::stats(device).allocated.total;
  {
    InMode mode(kind, program.dtype, Seed{program.seed},
                {.device = device, .budget = budget, .passes = passes});
    const auto step = mode.function(
        {{program.dtype, {-1, program.in}}, {DType::i32, {-1}}},
        [&](const Tensors& in) -> Tensors {
          const Tensor loss = program.train(in[0], in[1], mode.parameters);
          if (as_graph) {
            const auto fed = [&](std::int64_t rows) {
              return FedShapes{{in[0], {rows, program.in}}, {in[1], {rows}}};
            };
            outcome.plan =
                mode.recorded().plan({loss}, fed(program.batch), device, {.budget = budget});
            // The least is what a search finds, and may be more for fewer rows.
            if (program.takes_budgets() && !budget && passes)
              for (const std::int64_t rows : {program.batch, program.smaller_batch})
                outcome.least_budget = std::max(
                    outcome.least_budget, mode.recorded().least_budget({loss}, fed(rows), device));
          }
          return {loss};
        },
        true);
    Tensors results;
    for (int i = 0; i < kSteps; ++i) {
      results.push_back(step(program.samples(i, device))[0]);
      if (as_graph && i == 0) {
        outcome.session = mode.session().stats();
        outcome.page_locked_bytes = mode.session().memory().page_locked_bytes;
      }
    }
    outcome.training_peak_bytes = bytes.peak();
    for (const auto& [name, value] : mode.values()) results.push_back(value);
    outcome.peak_bytes = bytes.peak();
    outcome.total_bytes = memory::stats(device).allocated.total - before;
    if (!device.is_simulated())
      for (const Tensor& result : results)
        for (const double value : cast(result, DType::f64).to_vector<double>())
          outcome.values.push_back(value);
  }
  outcome.left_bytes = bytes.now();
  return outcome;
}

bool equal_bits(const Trained& a, const Trained& b) {
  return a.values.size() == b.values.size() &&
         std::memcmp(a.values.data(), b.values.data(), a.values.size() * sizeof(double)) == 0;
}

}  // namespace

TEST_CASE("random programs give the same bits in both modes, and take what plan and twin say") {
  const Device cpu = Device::cpu();
  std::size_t repeated_nodes = 0, cut_programs = 0, moved_values = 0;
  for (std::uint64_t seed = 1; seed <= program_count(); ++seed) {
    CAPTURE(seed);
    const TrainingProgram program(seed);
    const Trained eager = train(program, cpu, InMode::eager),
                  eager_twin = train(program, cpu.twin(), InMode::eager),
                  plain = train(program, cpu, InMode::graph, false),
                  graph = train(program, cpu, InMode::graph),
                  graph_twin = train(program, cpu.twin(), InMode::graph),
                  plain_compiled = train(program, cpu, InMode::compiled, false),
                  compiled = train(program, cpu, InMode::compiled),
                  compiled_twin = train(program, cpu.twin(), InMode::compiled);
    for (const Trained* each : {&plain, &plain_compiled}) REQUIRE(equal_bits(eager, *each));
    for (const Trained* each : {&graph, &compiled})
      REQUIRE(distance(eager.values, each->values) <= 1e-6);
    for (const Trained* each : {&eager, &eager_twin, &plain, &graph, &graph_twin, &plain_compiled,
                                &compiled, &compiled_twin})
      REQUIRE(each->left_bytes == 0);

    check_plan(graph.plan, graph.session);
    REQUIRE(eager_twin.peak_bytes == eager.peak_bytes);
    REQUIRE(eager_twin.total_bytes == eager.total_bytes);
    REQUIRE(graph_twin.peak_bytes == graph.peak_bytes);
    REQUIRE(graph_twin.total_bytes == graph.total_bytes);
    REQUIRE(compiled_twin.peak_bytes == compiled.peak_bytes);
    REQUIRE(compiled.training_peak_bytes <=
            eager.training_peak_bytes + program.bytes_of_copies(cpu));
    REQUIRE(compiled_twin.total_bytes == compiled.total_bytes);

    if (!program.takes_budgets()) continue;
    const std::size_t least = graph.least_budget, most = graph.plan.reserved_bytes;
    REQUIRE(least <= most);
    // Of micro-batches. Gradients of 16 bits may be too small for their dtype.
    const double tolerance = program.dtype == DType::f32 ? 1e-6 : 0.5;
    for (const std::size_t budget : {least, least + (most - least) / 3}) {
      const Trained fitted = train(program, cpu, InMode::graph, true, budget);
      const bool is_cut = fitted.plan.micro_batches > 1;
      REQUIRE((is_cut ? distance(graph.values, fitted.values) <= tolerance
                      : equal_bits(graph, fitted)));
      check_plan(fitted.plan, fitted.session);
      REQUIRE(fitted.session.reserved.peak <= budget);
      repeated_nodes += fitted.plan.repeated_nodes;
      cut_programs += is_cut;
      moved_values += fitted.plan.moved_values;
      REQUIRE(fitted.page_locked_bytes == fitted.plan.page_locked_bytes);
    }

    const Poisoned poisoned;
    REQUIRE(distance(graph.values, train(program, cpu, InMode::graph, true, least).values) <=
            tolerance);
    REQUIRE(equal_bits(eager, train(program, cpu, InMode::eager)));
    REQUIRE(equal_bits(graph, train(program, cpu, InMode::graph)));
    REQUIRE(equal_bits(compiled, train(program, cpu, InMode::compiled)));
  }
  if (!has_small_pages(__FILE__, __LINE__)) return;
  CHECK(repeated_nodes + moved_values > program_count() / 15);
  CHECK(cut_programs > program_count() / 120);
  if (cpu.runtime().profile().link_bytes_per_us > 0) CHECK(moved_values > 0);
}

TEST_CASE("random programs are written as ONNX models", "[.onnx]") {
  set_seed(Seed{5});
  for (std::uint64_t seed = 1; seed <= program_count(); ++seed) {
    Drawn drawn(seed);
    Graph graph;
    const Parameters parameters(graph, Seed{seed});
    const Tensor x = graph.placeholder("x", DType::f32, {-1, drawn.number(1, 24)});
    const auto weight = [&](const Shape& shape) {
      return parameters.declare("w" + std::to_string(parameters.entries().size()), shape,
                                initializers::uniform(-0.4, 0.4));
    };
    Tensors values{x};
    for (int left = drawn.number(1, 12); left > 0; --left)
      values.push_back(draw_value(drawn, values, weight));
    Session session(graph);
    session.initialize();
    write_onnx_case("random " + std::to_string(seed), session, {values.back()},
                    {{x, normal({drawn.number(1, 33), x.size(1)})}});
  }
}

}  // namespace ebb::tests
