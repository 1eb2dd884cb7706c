#include "ebb/tests/properties/random_program.h"
#include "ebb/ebb.h"
#include "ebb/tests/properties/stateful_machine.h"

namespace ebb::tests {

namespace {

int draw(std::mt19937_64& random, int low, int high) {
  return std::uniform_int_distribution<int>(low, high)(random);
}

// An instruction's weight, declared when it is first asked for.
Tensor weight_of(const Parameters& parameters, std::size_t index, const std::string& name,
                 const Shape& shape) {
  const std::string full = "i" + std::to_string(index) + "." + name;
  return parameters.contains(full)
             ? parameters[full]
             : parameters.declare(full, shape, initializers::uniform(-0.4, 0.4));
}

}  // namespace

std::string Recipe::describe() const {
  return "seed " + std::to_string(seed) + ", batch " + std::to_string(batch) + ", " +
         std::to_string(code.size()) + " instructions, optimizer " + std::to_string(optimizer) +
         (accumulates ? ", accumulating" : "");
}

Recipe draw_recipe(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Recipe recipe;
  recipe.seed = seed;
  recipe.batch = draw(random, 1, 33);
  recipe.smaller_batch = draw(random, 1, static_cast<int>(recipe.batch));
  recipe.in = draw(random, 1, 24);
  recipe.widths = {recipe.in};
  const int length = draw(random, 1, 12);
  for (int i = 0; i < length; ++i) {
    Instruction instruction;
    instruction.kind = static_cast<Instruction::Kind>(draw(random, 0, Instruction::kinds - 1));
    const int values = static_cast<int>(recipe.widths.size());
    // Mostly reads the last value, so that programs are deep; sometimes any, so that values are
    // shared.
    instruction.first = draw(random, 0, 2) ? values - 1 : draw(random, 0, values - 1);
    instruction.variant = draw(random, 0, 1000);
    instruction.width = recipe.widths[static_cast<std::size_t>(instruction.first)];
    switch (instruction.kind) {
      case Instruction::dense_layer:
      case Instruction::matrix_product:
      case Instruction::checkpointed:
        instruction.width = draw(random, 1, 40);
        break;
      case Instruction::sequence:
        instruction.width = draw(random, 1, 9);
        break;
      case Instruction::binary_same: {
        std::vector<int> fitting;
        for (int v = 0; v < values; ++v)
          if (recipe.widths[static_cast<std::size_t>(v)] == instruction.width) fitting.push_back(v);
        instruction.second = fitting[static_cast<std::size_t>(
            draw(random, 0, static_cast<int>(fitting.size()) - 1))];
        break;
      }
      default:
        break;
    }
    recipe.widths.push_back(instruction.width);
    recipe.code.push_back(instruction);
  }
  recipe.classifies = draw(random, 0, 1) == 1;
  recipe.optimizer = draw(random, 0, 3);
  recipe.accumulates = draw(random, 0, 3) == 0;
  return recipe;
}

namespace {

// Computes a value from earlier ones. The first call declares the weights that it takes.
Tensor step(const Recipe& recipe, const Parameters& parameters, std::size_t index,
            const std::vector<Tensor>& values) {
  const Instruction& instruction = recipe.code[index];
  const Tensor& a = values[static_cast<std::size_t>(instruction.first)];
  const Tensor& b = values[static_cast<std::size_t>(instruction.second)];
  const int variant = instruction.variant;
  const std::int64_t in = recipe.widths[static_cast<std::size_t>(instruction.first)];
  const std::int64_t out = instruction.width;
  const auto weight = [&](const std::string& name, const Shape& shape) {
    return weight_of(parameters, index, name, shape);
  };
  switch (instruction.kind) {
    case Instruction::dense_layer:
      return dense(a, weight("w", {in, out}), weight("b", {out}),
                   static_cast<Activation>(variant % 4));
    case Instruction::matrix_product:
      return variant % 2 ? matmul(a, weight("w", {out, in}), {.transpose_b = true})
                         : matmul(a, weight("w", {in, out}));
    case Instruction::unary:
      return compute({.kind = Line::unary, .variant = variant}, a, {});
    case Instruction::binary_numbers:
      return compute({.kind = Line::number, .variant = variant, .constant = 0.75}, a, {});
    case Instruction::binary_same:
      switch (variant % 4) {
        case 0:
          return a + b;
        case 1:
          return a - b;
        case 2:
          return tanh(a) * tanh(b);
        default:
          return a / (square(b) + 1);
      }
    case Instruction::binary_row:
      return variant % 2 ? a * weight("row", {out}) : weight("row", {out}) - a;
    case Instruction::normalize: {
      const ReduceOptions options{.axes = {variant % 2}, .keep = true};
      return variant % 4 < 2 ? a / (mean(square(a), options) + 1) : a - sum(a, options) * 0.1;
    }
    case Instruction::round_trip: {
      const Tensor cube = reshape(a, {-1, instruction.width, 1});
      return variant % 2 ? reshape(cube, {-1, instruction.width})
                         : last_step(reshape(cube, {-1, 1, instruction.width}));
    }
    case Instruction::sequence: {
      std::vector<LstmWeights> layers;
      for (int layer = 0; layer <= variant % 2; ++layer) {
        const std::string scope = "layer" + std::to_string(layer);
        layers.push_back({weight(scope + "w", {layer ? out : 1, 4 * out}),
                          weight(scope + "r", {out, 4 * out}), weight(scope + "b", {4 * out})});
      }
      const LstmResult result = lstm(reshape(a, {-1, in, 1}), layers);
      return variant % 3 ? last_step(result.sequence)
                         : select(result.hidden, 0, 0) + select(result.cell, 0, -1);
    }
    case Instruction::checkpointed: {
      const Tensor w = weight("w", {in, out}), bias = weight("b", {out});
      return recompute([w, bias](const Tensor& x) { return tanh(dense(x, w, bias) * 0.5); }, a);
    }
    case Instruction::moved:
      switch (variant % 6) {
        case 0:
          return transpose(transpose(a) * 0.5);
        case 1: {
          const Tensors parts = split(a, {instruction.width / 2, -1}, 1);
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
    case Instruction::kinds:
      break;
  }
  return a;
}

}  // namespace

Tensor loss_of(const Recipe& recipe, const Parameters& parameters, const Tensor& x,
               const Tensor& y) {
  std::vector<Tensor> values{x};
  for (std::size_t i = 0; i < recipe.code.size(); ++i)
    values.push_back(step(recipe, parameters, i, values));
  // The loss always depends on a parameter.
  const Tensor last = values.back() * weight_of(parameters, recipe.code.size(), "scale", {1});
  if (recipe.classifies) return softmax_cross_entropy(last, y);
  return mean(square(tanh(last) - 0.25));
}

Tensor minimize(const Recipe& recipe, const Tensor& loss, const Tensor& y,
                const Parameters& parameters) {
  const optim::Optimizer optimizers[] = {
      optim::Sgd({.learning_rate = 0.05}),
      optim::Sgd({.learning_rate = 0.05, .momentum = 0.9, .nesterov = true}),
      optim::Adam({.learning_rate = optim::cosine(1e-2, {.warm_up = 2, .steps = 10})}),
      optim::AdamW({.learning_rate = 1e-2})};
  const optim::Optimizer& optimizer = optimizers[recipe.optimizer];
  if (!recipe.accumulates) return optimizer.minimize(loss, parameters);
  return optim::Accumulator(optimizer, {.samples = 2 * recipe.batch})
      .minimize(loss, parameters, rows(y));
}

Samples draw_samples(const Recipe& recipe, std::int64_t rows, std::uint64_t seed,
                     const Device& device) {
  std::mt19937_64 random(seed);
  std::vector<float> x(static_cast<std::size_t>(rows * recipe.in));
  for (float& value : x) value = std::uniform_real_distribution<float>(-1, 1)(random);
  std::vector<std::int32_t> y(static_cast<std::size_t>(rows));
  for (std::int32_t& label : y) label = draw(random, 0, recipe.widths.back() - 1);
  return {Tensor::from(x, {rows, recipe.in}, device), Tensor::from(y, {rows}, device)};
}

}  // namespace ebb::tests
