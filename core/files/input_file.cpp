#include "ebb/core/files/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "ebb/core/base/error.h"

namespace ebb::detail {

namespace {

std::string cause() { return std::generic_category().message(errno); }

// Linux reads no more than 2 GiB in one call.
constexpr std::size_t kMostRead = std::size_t{1} << 30;

thread_local std::optional<std::size_t> fail_after;  // reads that pass before one fails

bool fails_now() noexcept {
  if (!fail_after || (*fail_after)-- > 0) return false;
  fail_after.reset();
  return true;
}

}  // namespace

void fail_read_after(std::optional<std::size_t> successes) noexcept { fail_after = successes; }

InputFile::InputFile(std::string name)
    : name_(std::move(name)),
      // Without O_NONBLOCK, opening a pipe would wait for a writer.
      descriptor_(::open(name_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) fail("cannot be opened: " + cause());
  struct stat status {};
  const bool known = ::fstat(descriptor_, &status) == 0;
  std::string problem;
  if (!known)
    problem = "cannot be examined: " + cause();
  else if (S_ISDIR(status.st_mode))
    problem = "is a directory, not a file";
  else if (!S_ISREG(status.st_mode))
    problem = "is not a regular file";
  if (!problem.empty()) {
    ::close(descriptor_);
    fail(problem);
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  if (fails_now()) fail("cannot be read: a test made this read fail");
  auto* out = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t got =
        ::pread(descriptor_, out, std::min(bytes, kMostRead), static_cast<off_t>(offset));
    if (got < 0) {
      if (errno == EINTR) continue;
      fail("cannot be read: " + cause());
    }
    if (got == 0)
      fail("ends at byte " + std::to_string(offset) + ", " + std::to_string(bytes) +
           " bytes before what was to be read");
    out += got;
    offset += static_cast<std::uint64_t>(got);
    bytes -= static_cast<std::size_t>(got);
  }
}

int InputFile::duplicate() const {
  const int descriptor = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
  if (descriptor < 0) fail("cannot be opened: " + cause());
  return descriptor;
}

void InputFile::fail(const std::string& text) const { refuse_file(name_ + ": " + text); }

void make_booleans(void* bytes, std::size_t count) noexcept {
  auto* const first = static_cast<unsigned char*>(bytes);
  std::transform(first, first + count, first,
                 [](unsigned char byte) { return static_cast<unsigned char>(byte != 0); });
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 60;
  const bool cut = text.size() > longest;
  std::string result = "'";
  for (const char c : text.substr(0, longest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
      result += c;
    } else {
      constexpr char digits[] = "0123456789abcdef";
      result += "\\x";
      result += digits[byte >> 4];
      result += digits[byte & 15];
    }
  }
  return result + (cut ? "...'" : "'");
}

}  // namespace ebb::detail
