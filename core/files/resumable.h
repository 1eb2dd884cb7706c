#pragma once
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

}  // namespace ebb
