#pragma once
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "ebb/core/files/resumable.h"
#include "ebb/core/random/random.h"

namespace ebb::detail {

// Position of a loader, with the properties that a loader that takes it up must share.
struct LoaderPosition {
  std::uint64_t pass = 0;
  std::int64_t position = 0;  // in the pass, in batches
  std::optional<Seed> shuffle;
  std::int64_t samples = 0;
  std::int64_t batch = 0;
  bool drop_last = false;

  LoaderPosition next_pass() const noexcept {
    LoaderPosition next = *this;
    ++next.pass;
    next.position = 0;
    return next;
  }

  Resumable::Position as_text() const {
    Resumable::Position text{{"pass", std::to_string(pass)},
                             {"position", std::to_string(position)},
                             {"samples", std::to_string(samples)},
                             {"batch", std::to_string(batch)},
                             {"drop_last", drop_last ? "1" : "0"}};
    if (shuffle) text.emplace("shuffle", std::to_string(shuffle->value));
    return text;
  }

  // Parses a position; nothing if a part is missing or no number.
  static std::optional<LoaderPosition> from_text(const Resumable::Position& text) noexcept {
    LoaderPosition result;
    int drop_last = 0;
    if (!(read(text, "pass", result.pass) && read(text, "position", result.position) &&
          read(text, "samples", result.samples) && read(text, "batch", result.batch) &&
          read(text, "drop_last", drop_last)))
      return {};
    if (!std::in_range<std::int64_t>(result.pass)) return {};
    result.drop_last = drop_last != 0;
    if (text.contains("shuffle") && !read(text, "shuffle", result.shuffle.emplace().value))
      return {};
    return result;
  }

  // "100 samples in batches of 32, none of fewer, shuffled".
  std::string describe() const {
    return std::to_string(samples) + " samples in batches of " + std::to_string(batch) +
           (drop_last ? ", none of fewer" : "") + (shuffle ? ", shuffled" : ", in order");
  }

 private:
  template <class T>
  static bool read(const Resumable::Position& text, const char* name, T& value) noexcept {
    const auto found = text.find(name);
    if (found == text.end()) return false;
    const std::string& digits = found->second;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return error == std::errc() && end == digits.data() + digits.size();
  }
};

}  // namespace ebb::detail
