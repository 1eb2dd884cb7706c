// Reads small text files of the kernel without the heap.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstring>
#include <limits>
#include <optional>
#include <string_view>

namespace ebb::memory::detail {

/// First number in a text; the largest value if it overflows; nothing if there is no digit.
inline std::optional<std::size_t> number_in(std::string_view text) noexcept {
  const std::size_t at = text.find_first_of("0123456789");
  if (at == std::string_view::npos) return {};
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  return error == std::errc() ? number : std::numeric_limits<std::size_t>::max();
}

/// A path built in place, without the heap. If it does not fit, there is no path.
class Path {
 public:
  explicit Path(const char* folder) noexcept { append(folder); }

  bool append(std::string_view part) noexcept {
    fits_ = fits_ && part.size() < text_.size() - length_;
    if (!fits_) return false;
    part.copy(text_.data() + length_, part.size());
    length_ += part.size();
    return true;
  }
  /// Path of a file in the folder, valid until the next call; null if it does not fit.
  const char* with(std::string_view name) noexcept {
    const std::size_t length = length_;
    if (!append(name)) return nullptr;
    text_[length_] = '\0';
    length_ = length;
    return text_.data();
  }

 private:
  std::array<char, 4096> text_;
  std::size_t length_ = 0;
  bool fits_ = true;
};

/// Lines of a file of any length, however the kernel splits its reads. Lines longer than the buffer
/// are left out.
class Lines {
 public:
  explicit Lines(const char* path) noexcept
      : file_(path ? ::open(path, O_RDONLY | O_CLOEXEC) : -1) {}
  ~Lines() {
    if (file_ >= 0) ::close(file_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  /// Next line without its end, valid until the next call. Nothing after the last line, or if the
  /// file is missing or cannot be read.
  std::optional<std::string_view> next() noexcept {
    if (file_ < 0) return {};
    for (bool is_cut = false;;) {
      const std::string_view rest(text_.data() + begin_, end_ - begin_);
      const std::size_t length = rest.find('\n');
      if (length != std::string_view::npos) {
        begin_ += length + 1;
        if (!is_cut) return rest.substr(0, length);
        is_cut = false;
        continue;
      }
      if (rest.size() == text_.size()) {
        is_cut = true;
        begin_ = end_ = 0;
      } else {
        std::memmove(text_.data(), rest.data(), rest.size());
        begin_ = 0;
        end_ = rest.size();
      }
      if (read_more()) continue;
      begin_ = end_ = 0;
      if (is_cut || rest.empty()) return {};
      return std::string_view(text_.data(), rest.size());
    }
  }

 private:
  bool read_more() noexcept {
    ssize_t count = 0;
    do {
      count = ::read(file_, text_.data() + end_, text_.size() - end_);
    } while (count < 0 && errno == EINTR);
    if (count <= 0) return false;
    end_ += static_cast<std::size_t>(count);
    return true;
  }

  const int file_;
  std::array<char, 4096> text_;
  std::size_t begin_ = 0, end_ = 0;
};

}  // namespace ebb::memory::detail
