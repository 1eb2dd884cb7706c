// A text to predict character by character, and baselines to judge predictions by.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "ebb/core/data/sample_reader.h"
#include "ebb/core/tensor/tensor.h"

namespace examples {

// A text as codes. The code of a character is its place in `characters`, the sorted set of all that
// occur.
struct Text {
  std::string characters;
  std::vector<std::int32_t> training, held_out;  // the last tenth is held out

  std::int64_t classes() const { return static_cast<std::int64_t>(characters.size()); }
};

// Throws FileError.
Text read_text(const std::string& file);

// Samples of two fields, i32[length] each: a window of codes, and the same window one code later.
// Windows begin `stride` apart. The codes stay the caller's. Throws Error for codes that fill none.
ebb::SampleReader windows(std::span<const std::int32_t> codes, std::int64_t length,
                          std::int64_t stride);

// Windows for a state that is carried on. The text is cut into `columns` of equal length, side by
// side, and each column into windows. Read in order, in batches of `columns`, each window continues
// its column of the batch before. A remainder that fills no row of windows is left out.
ebb::SampleReader rows_of_columns(std::span<const std::int32_t> codes, std::int64_t columns,
                                  std::int64_t length);

// Bits per character on the held-out part, by a model that counts `order` characters in a row in
// the training part. With n(h) the number of times that the order - 1 characters h were seen and
// k(h) the number of different characters seen after them,
//   P(c | h) = (n(h c) + k(h) P(c | h less its first)) / (n(h) + k(h)),
// and equal probabilities below the first order: Witten and Bell, "The zero-frequency problem",
// IEEE Transactions on Information Theory 37 (1991), their method C, interpolated.
double ngram_bits(const Text& text, std::size_t order);

// Converts a cross entropy from nats to bits.
double in_bits(double nats);

// Prints both baselines and the model's bits per character, from its cross entropy.
void print_bits(const Text& text, const char* model, double nats);

// Prints the first `prompt` characters of the held-out part, and the text that a model continues
// them with. `scores` rates each character as the next one. Throws Error for a shorter part.
using Scores = std::function<ebb::Tensor(std::span<const std::int32_t> written)>;
void write(const Text& text, std::int64_t prompt, const Scores& scores);

}  // namespace examples
