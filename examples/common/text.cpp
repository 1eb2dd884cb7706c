#include "ebb/examples/common/text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <numbers>
#include <set>
#include <unordered_map>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/random/random.h"

namespace examples {

namespace {

constexpr std::size_t kOrder = 5;  // the best order on the bundled text

struct Followers {
  std::unordered_map<std::int32_t, double> counts;
  double total = 0;
};
// Followers by context, the preceding characters as a string of their codes.
using Counts = std::unordered_map<std::string, Followers>;

std::string key(std::span<const std::int32_t> codes) {
  std::string key;
  for (const std::int32_t code : codes) key += static_cast<char>(code);
  return key;
}

void require(std::span<const std::int32_t> codes, std::int64_t count) {
  if (std::ssize(codes) < count)
    throw ebb::Error("[text] a part has " + std::to_string(codes.size()) +
                     " characters, fewer than " + std::to_string(count));
}

// Windows of `length` codes; sample i begins at begin(i).
ebb::SampleReader read_windows(std::span<const std::int32_t> codes, std::int64_t length,
                               std::int64_t count,
                               const std::function<std::int64_t(std::int64_t sample)>& begin) {
  const ebb::Spec spec{ebb::DType::i32, {length}};
  return {.size = count,
          .fields = {spec, spec},
          .read = [=](std::int64_t sample, std::size_t field, void* values) {
            const auto first = static_cast<std::size_t>(begin(sample)) + field;
            const auto window = codes.subspan(first, static_cast<std::size_t>(length));
            std::ranges::copy(window, static_cast<std::int32_t*>(values));
          }};
}

}  // namespace

Text read_text(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::string all{std::istreambuf_iterator<char>(in), {}};
  if (!in || all.size() < 10) throw ebb::FileError("[text] " + file + " cannot be read as a text");
  Text text;
  const std::set<char> characters(all.begin(), all.end());
  text.characters.assign(characters.begin(), characters.end());
  const std::size_t boundary = all.size() - all.size() / 10;
  for (std::size_t i = 0; i < all.size(); ++i)
    (i < boundary ? text.training : text.held_out)
        .push_back(static_cast<std::int32_t>(text.characters.find(all[i])));
  return text;
}

ebb::SampleReader windows(std::span<const std::int32_t> codes, std::int64_t length,
                          std::int64_t stride) {
  require(codes, length + 1);
  return read_windows(codes, length, (std::ssize(codes) - length - 1) / stride + 1,
                      [=](std::int64_t sample) { return sample * stride; });
}

ebb::SampleReader rows_of_columns(std::span<const std::int32_t> codes, std::int64_t columns,
                                  std::int64_t length) {
  const std::int64_t height = std::ssize(codes) / columns;
  return read_windows(codes, length, (height - 1) / length * columns, [=](std::int64_t sample) {
    return sample % columns * height + sample / columns * length;
  });
}

double ngram_bits(const Text& text, std::size_t order) {
  std::vector<std::int32_t> all = text.training;
  all.insert(all.end(), text.held_out.begin(), text.held_out.end());
  const auto before = [&](std::size_t i, std::size_t length) {
    return key(std::span(all).subspan(i - length, length));
  };
  std::vector<Counts> counts(order);
  for (std::size_t i = 0; i < text.training.size(); ++i)
    for (std::size_t length = 0; length < order && length <= i; ++length) {
      Followers& followers = counts[length][before(i, length)];
      ++followers.counts[all[i]];
      ++followers.total;
    }
  double bits = 0;
  for (std::size_t i = text.training.size(); i < all.size(); ++i) {
    double probability = 1 / static_cast<double>(text.classes());
    for (std::size_t length = 0; length < order; ++length) {
      const auto found = counts[length].find(before(i, length));
      if (found == counts[length].end()) break;
      const Followers& followers = found->second;
      const auto follower = followers.counts.find(all[i]);
      const double count = follower == followers.counts.end() ? 0 : follower->second;
      const auto kinds = static_cast<double>(followers.counts.size());
      probability = (count + kinds * probability) / (followers.total + kinds);
    }
    bits -= std::log2(probability);
  }
  return bits / static_cast<double>(text.held_out.size());
}

double in_bits(double nats) { return nats / std::numbers::ln2; }

void print_bits(const Text& text, const char* model, double nats) {
  std::printf("bits per character, held out: single characters %.3f, %zu in a row %.3f, %s %.3f\n",
              ngram_bits(text, 1), kOrder, ngram_bits(text, kOrder), model, in_bits(nats));
}

void write(const Text& text, std::int64_t prompt, const Scores& scores) {
  require(text.held_out, prompt);
  std::vector<std::int32_t> written(text.held_out.begin(), text.held_out.begin() + prompt);
  ebb::set_seed(ebb::Seed{1});
  for (int i = 0; i < 320; ++i) {
    // A temperature below 1 makes likely codes likelier.
    const ebb::Tensor code = ebb::categorical(scores(written), 0.7);
    written.push_back(static_cast<std::int32_t>(code.item<std::int64_t>()));
  }
  for (const std::int32_t code : written)
    std::putchar(text.characters[static_cast<std::size_t>(code)]);
  std::printf("\n");
}

}  // namespace examples
