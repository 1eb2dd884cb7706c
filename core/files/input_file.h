#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace ebb::detail {

// A regular file open for reading. It is not mapped, so that a file cut short while it is read
// gives an error here, not a signal.
class InputFile {
 public:
  // Throws FileError with the system's cause; also for a directory, a pipe or a device, which have
  // no known size.
  explicit InputFile(std::string name);
  InputFile(InputFile&& other) noexcept
      : name_(std::move(other.name_)),
        descriptor_(std::exchange(other.descriptor_, -1)),
        size_(other.size_) {}
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& name() const noexcept { return name_; }
  std::uint64_t size() const noexcept { return size_; }
  // Reads exactly `bytes` bytes from `offset`. Throws FileError, also if the file has become
  // shorter.
  void read(std::uint64_t offset, void* to, std::size_t bytes) const;
  // A descriptor of the same file, which the caller closes. Throws FileError.
  int duplicate() const;
  // Throws FileError "name: text", with the user's line inside a CallSiteScope.
  [[noreturn]] void fail(const std::string& text) const;

 private:
  std::string name_;
  int descriptor_;
  std::uint64_t size_ = 0;
};

// Turns `count` bytes from a file into booleans: any byte but 0 becomes 1, the only true value a
// bool may have in memory.
void make_booleans(void* bytes, std::size_t count) noexcept;

// For tests: lets the calling thread's next `successes` reads pass and makes the one after them
// throw FileError, once, as on a failing disk. Without a value no read fails.
void fail_read_after(std::optional<std::size_t> successes) noexcept;

// Text from a file, for a message: in single quotes, shortened, unprintable bytes as \xNN.
std::string in_quotes(std::string_view text);

}  // namespace ebb::detail
