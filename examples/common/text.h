// A text to predict character by character, and what there is to judge predictions by.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ebb/core/data/sample_reader.h"
#include "ebb/core/tensor/tensor.h"

namespace examples {

// The code of a character is its place in `characters`, all that occur, in order.
struct Text {
  std::string characters;
  std::vector<std::int32_t> training, held_out;  // the last tenth is held out

  std::int64_t classes() const { return static_cast<std::int64_t>(characters.size()); }
};

// Throws FileError.
Text read_text(const std::string& file);

// Windows of `length` codes that begin `stride` apart, field 0, and the codes that follow each of
// theirs, field 1: i32[length]. The codes stay the caller's.
ebb::SampleReader windows(std::span<const std::int32_t> codes, std::int64_t length,
                          std::int64_t stride);

// Windows for a state that is carried on: the text stands in `columns` of one length, side by side,
// cut into rows of windows. Read in order, in batches of `columns`, each window goes on where its
// column ended in the batch before. A rest that fills no row is left out.
ebb::SampleReader rows_of_columns(std::span<const std::int32_t> codes, std::int64_t columns,
                                  std::int64_t length);

// The bits per character of what is held out, by counts in the training part of `order` characters
// in a row. With n(h) the times that the order - 1 characters h were seen and k(h) the number of
// characters seen behind them,
//   P(c | h) = (n(h c) + k(h) P(c | h less its first)) / (n(h) + k(h)),
// and equal probabilities below the first order: Witten and Bell, "The zero-frequency problem",
// IEEE Transactions on Information Theory 37 (1991), their method C, interpolated.
double ngram_bits(const Text& text, std::size_t order);

// A cross entropy as bits.
double in_bits(double nats);

// Prints both baselines and the model's figure, from its cross entropy.
void print_bits(const Text& text, const char* model, double nats);

// Prints the first `prompt` characters of the part held out, and the text that a model writes
// behind them. `scores` rates each character as the next one.
using Scores = std::function<ebb::Tensor(std::span<const std::int32_t> written)>;
void write(const Text& text, std::int64_t prompt, const Scores& scores);

}  // namespace examples
