#include "ebb/core/files/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "ebb/core/base/error.h"

namespace ebb::detail {

namespace {

constexpr std::size_t kMostWritten = std::size_t{1} << 30;

// Another name in the same folder, which no other writer in this process uses.
std::string another_name(const std::string& name) {
  static std::atomic<unsigned> count{0};
  return name + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
}

std::string folder_of(const std::string& name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : name.substr(0, slash);
}

// Makes the rename survive a crash of the machine. Failures are ignored: some file systems cannot
// sync a folder, and some folders cannot be read, but the file is there all the same.
void sync_folder(const std::string& folder) noexcept {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

[[noreturn]] void fail_for(const std::string& name, const char* what) {
  const std::string cause = std::generic_category().message(errno);  // before errno changes
  refuse_file(name + ": " + what + ": " + cause);
}

// Follows links to the file that is meant, whether it exists or not, so that links stay as they
// are. Throws for as many links as the system does not follow.
std::string behind_links(const std::string& name) {
  namespace fs = std::filesystem;
  fs::path file = name;
  std::error_code none;
  for (int links = 0; fs::is_symlink(file, none); ++links) {
    if (links == 40) {
      errno = ELOOP;
      fail_for(name, "cannot be written");
    }
    file = file.parent_path() / fs::read_symlink(file, none);
  }
  return file.string();
}

void require_replaceable(const std::string& name) {
  if (name.empty()) refuse_file("'' is no name of a file to write");
  struct stat status {};
  if (::stat(name.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    refuse_file(name + ": cannot be written: it is there and not a regular file");
}

}  // namespace

std::string little_endian(std::uint64_t number, std::size_t bytes) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) text += static_cast<char>(number >> 8 * i);
  return text;
}

WritableFile::~WritableFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void WritableFile::write(const void* from, std::size_t bytes) {
  const auto* in = static_cast<const char*>(from);
  while (bytes > 0) {
    const ssize_t put = ::write(descriptor_, in, std::min(bytes, kMostWritten));
    if (put < 0) {
      if (errno == EINTR) continue;
      fail("cannot be written");
    }
    in += put;
    bytes -= static_cast<std::size_t>(put);
  }
}

void WritableFile::close() {
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("cannot be closed");
}

void WritableFile::fail(const char* what) const { fail_for(name_, what); }

OutputFile::OutputFile(std::string name)
    : WritableFile(std::move(name)), target_(behind_links(name_)) {
  require_replaceable(name_);
  do {
    temporary_ = another_name(target_);
    descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) fail("cannot be written");
}

void OutputFile::check(const std::string& name) {
  const std::string target = behind_links(name);
  require_replaceable(name);
  // A file of another name is made beside the target: the folder has to take it.
  const std::string folder = folder_of(target) + "/.";
  const bool is_nameable = ::access(another_name(target).c_str(), F_OK) == 0 || errno == ENOENT;
  if (!is_nameable || ::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    fail_for(name, "cannot be written");
}

OutputFile::~OutputFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void OutputFile::seek(std::uint64_t offset) {
  if (::lseek(descriptor_, static_cast<off_t>(offset), SEEK_SET) < 0) fail("cannot be written");
}

void OutputFile::commit() {
  const std::string folder = folder_of(target_);  // behind the rename nothing may fail
  if (::fsync(descriptor_) != 0) fail("cannot be synced");
  close();
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("cannot be put in place");
  temporary_.clear();
  sync_folder(folder);
}

ScratchFile::ScratchFile(std::string name) : WritableFile(std::move(name)) {
  descriptor_ = ::open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor_ < 0) fail(errno == EEXIST ? "is there already" : "cannot be made");
}

}  // namespace ebb::detail
