#pragma once
#include <map>
#include <string>

namespace ebb {

// What a checkpoint carries beside parameters, so that a program goes on where it was: the position
// of a DataLoader, or of a loader of one's own.
class Resumable {
 public:
  using Position = std::map<std::string, std::string>;

  // At least one entry: an empty one is refused when it is saved.
  virtual Position position() const = 0;
  // Whether it can go on from there. Throws FileError, which names the file that the position was
  // read from and says what differs.
  virtual void check(const Position& position, const std::string& file) const = 0;
  // Goes on from a position that check() has let pass.
  virtual void resume(const Position& position) noexcept = 0;

 protected:
  Resumable() = default;
  Resumable(const Resumable&) = default;
  Resumable& operator=(const Resumable&) = default;
  ~Resumable() = default;
};

}  // namespace ebb
