// Random training programs from ebb's operators, written once and run in every mode.
#pragma once
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ebb/ebb.h"

namespace ebb::tests {

// Takes earlier values of shape [batch, width] and makes another.
struct Instruction {
  enum Kind {
    dense_layer,     // with weights of its own, any activation
    matrix_product,  // with a weight, perhaps transposed
    unary,
    binary_numbers,  // with plain numbers on either side
    binary_same,     // of two values of one width
    binary_row,      // with a weight [width], broadcast
    normalize,       // divided by a reduction of itself that keeps its axes
    round_trip,      // reshape there and back, select of it
    sequence,        // through an LSTM of one or two layers
    checkpointed,    // dense and tanh inside recompute
    moved,           // taken apart and put together again, perhaps in another order
    kinds
  };
  Kind kind = unary;
  int first = 0, second = 0;  // values
  int width = 1;              // of the result
  int variant = 0;
};

struct Recipe {
  std::uint64_t seed = 0;
  std::int64_t batch = 1, smaller_batch = 1;
  int in = 1;
  std::vector<int> widths;  // of each value; value 0 is the input
  std::vector<Instruction> code;
  bool classifies = false;  // softmax cross-entropy over the last value, else mean squared error
  int optimizer = 0;
  bool accumulates = false;

  std::string describe() const;
};

Recipe draw_recipe(std::uint64_t seed);

// The loss of a recipe's model. The first call declares the weights, in the same order in every
// mode.
Tensor loss_of(const Recipe& recipe, const Parameters& parameters, const Tensor& x,
               const Tensor& y);

// The training step of a recipe: its optimizer, accumulating or not.
Tensor minimize(const Recipe& recipe, const Tensor& loss, const Tensor& y,
                const Parameters& parameters);

// Inputs and targets of `rows` samples.
struct Samples {
  Tensor x, y;
};
Samples draw_samples(const Recipe& recipe, std::int64_t rows, std::uint64_t seed,
                     const Device& device);

}  // namespace ebb::tests
