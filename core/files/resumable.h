#pragma once
#include <charconv>
#include <map>
#include <string>

namespace ebb {

// State that a checkpoint carries beside parameters so that a program continues at the same place:
// the position of a DataLoader, or of a loader of one's own.
class Resumable {
 public:
  using Position = std::map<std::string, std::string>;

  // Current position, with at least one entry: saving an empty one is refused.
  virtual Position position() const = 0;
  // Checks that it can continue from `position`. Throws FileError, which names `file`, the source
  // of the position, and says what differs.
  virtual void check(const Position& position, const std::string& file) const = 0;
  // Continues from a position that check() has accepted.
  virtual void resume(const Position& position) noexcept = 0;

 protected:
  Resumable() = default;
  Resumable(const Resumable&) = default;
  Resumable& operator=(const Resumable&) = default;
  ~Resumable() = default;
};

namespace detail {
// Reads a number of a position, or of a file's metadata. False if there is none of that name.
template <class T>
bool read_number(const Resumable::Position& text, const char* name, T& value) noexcept {
  const auto found = text.find(name);
  if (found == text.end()) return false;
  const std::string& digits = found->second;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return error == std::errc() && end == digits.data() + digits.size();
}
}  // namespace detail

}  // namespace ebb
