#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ebb::detail {

// A regular file open for reading. Nothing is mapped: a file cut short while it is read is an error
// here, not a signal.
class InputFile {
 public:
  // Throws FileError with the system's cause; also for a directory, a pipe or a device, whose size
  // nobody knows.
  explicit InputFile(std::string name);
  InputFile(InputFile&& other) noexcept
      : name_(std::move(other.name_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        size_(other.size_) {}
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& name() const noexcept { return name_; }
  std::uint64_t size() const noexcept { return size_; }
  // Exactly `bytes` bytes from `offset`. Throws FileError, also where the file has become shorter.
  void read(std::uint64_t offset, void* to, std::size_t bytes) const;
  // Throws FileError "name: text", with the user's line where there is a scope that has it.
  [[noreturn]] void fail(const std::string& text) const;

 private:
  std::string name_;
  int descriptor_;
  std::uint64_t size_ = 0;
};

// Makes `count` booleans of bytes from a file, where whatever is not 0 is true: of true, only 1 is
// a bool in memory.
void make_booleans(void* bytes, std::size_t count) noexcept;

// For tests: of the calling thread's reads the next `successes` pass and the one after them throws
// FileError, once, as on a failing disk. Nothing: no read fails any more.
void fail_read_after(std::optional<std::size_t> successes) noexcept;

// Text found in a file, for a message: in single quotes, shortened, unprintable bytes as \xNN.
std::string in_quotes(std::string_view text);

}  // namespace ebb::detail
