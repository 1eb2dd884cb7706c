#include "ebb/allocator/host_capacity.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>

#include "ebb/allocator/error.h"
#include "ebb/allocator/statistics.h"

namespace ebb::memory {
namespace {

constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();

// First number in a text; the largest value if it overflows; nothing if there is no digit.
std::optional<std::size_t> number_in(std::string_view text) noexcept {
  const std::size_t at = text.find_first_of("0123456789");
  if (at == std::string_view::npos) return {};
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  return error == std::errc() ? number : kMost;
}

// A path built in place, without the heap. If it does not fit, there is no path.
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
  // Path of a file in the folder, valid until the next call; null if it does not fit.
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

// Lines of a file of any length, however the kernel splits its reads. Lines longer than the buffer
// are left out.
class Lines {
 public:
  explicit Lines(const char* path) noexcept
      : file_(path ? ::open(path, O_RDONLY | O_CLOEXEC) : -1) {}
  ~Lines() {
    if (file_ >= 0) ::close(file_);
  }
  Lines(const Lines&) = delete;
  Lines& operator=(const Lines&) = delete;

  // Next line without its end, valid until the next call. Nothing after the last line, or if the
  // file is missing or cannot be read.
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

std::size_t difference(std::size_t a, std::size_t b) noexcept { return a > b ? a - b : 0; }

std::size_t page_bytes() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

// Returns the number in the file's first line; nothing if there is none, as in "max".
std::optional<std::size_t> number_of(const char* path) noexcept {
  Lines lines(path);
  const auto line = lines.next();
  return line ? number_in(*line) : std::nullopt;
}

HostMemory machine(const char* proc) noexcept {
  HostMemory memory{.total = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * page_bytes(),
                    .free = static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES)) * page_bytes()};
  Path path(proc);
  Lines lines(path.with("/meminfo"));
  for (int found = 0; found < 2;) {
    const auto line = lines.next();  // "MemAvailable:   12345 kB"
    if (!line) break;
    std::size_t* figure = line->starts_with("MemTotal:")       ? &memory.total
                          : line->starts_with("MemAvailable:") ? &memory.free
                                                               : nullptr;
    if (!figure) continue;
    ++found;
    if (const auto kibibytes = number_in(*line))
      *figure = *kibibytes > kMost / 1024 ? kMost : *kibibytes * 1024;
  }
  return memory;
}

// Files of one version of cgroups. Version 1 counts a group's children in separate figures.
struct Version {
  const char *limit, *usage;
  std::string_view inactive_file, active_file;
};
constexpr Version kVersion1{"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                            "total_inactive_file ", "total_active_file "};
constexpr Version kVersion2{"/memory.max", "/memory.current", "inactive_file ", "active_file "};

// Bytes of file cache that are reclaimed before anything is killed: the inactive ones, or half of
// all if that is more. The kernel's own estimate for MemAvailable does the same.
std::size_t reclaimable(const char* stat, const Version& version) noexcept {
  if (!stat) return 0;
  std::size_t inactive = 0, active = 0;
  Lines lines(stat);
  for (int found = 0; found < 2;) {
    const auto line = lines.next();
    if (!line) break;
    if (line->starts_with(version.inactive_file)) {
      ++found;
      inactive = number_in(*line).value_or(0);
    } else if (line->starts_with(version.active_file)) {
      ++found;
      active = number_in(*line).value_or(0);
    }
  }
  return std::max(inactive, inactive / 2 + active / 2);
}

// Bounds by one group. Version 1 writes "no limit" as a limit above the machine's memory, which
// bounds nothing.
void bound_by_group(HostMemory& memory, Path& group, const Version& version,
                    std::size_t machine_bytes) noexcept {
  const auto limit = number_of(group.with(version.limit));
  if (!limit || *limit >= machine_bytes) return;
  memory.total = std::min(memory.total, *limit);
  const std::size_t usage = number_of(group.with(version.usage)).value_or(0);
  std::size_t left = difference(*limit, usage);
  if (left >= memory.free) return;  // and memory.stat, the slow one, need not be read
  left = difference(*limit, difference(usage, reclaimable(group.with("/memory.stat"), version)));
  memory.free = std::min(memory.free, left);
}

// Bounds by a group and all groups that contain it. A group that is not there is skipped: a
// container that sees itself at the root of the mount may still find its place on the machine in
// /proc.
void bound_by_groups(HostMemory& memory, const char* cgroup, std::string_view mount,
                     std::string_view group, const Version& version,
                     std::size_t machine_bytes) noexcept {
  Path path(cgroup);
  path.append(mount);
  if (group.find("/..") != std::string_view::npos) group = {};  // outside of the mount
  for (;;) {
    while (group.ends_with('/')) group.remove_suffix(1);
    Path level = path;
    if (level.append(group)) bound_by_group(memory, level, version, machine_bytes);
    if (group.empty()) return;
    group = group.substr(0, group.rfind('/') + 1);
  }
}

bool contains_memory(std::string_view controllers) noexcept {
  while (!controllers.empty()) {
    const std::size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == "memory") return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

void bound_by_cgroups(HostMemory& memory, const HostRoots& roots) noexcept {
  const std::size_t machine_bytes = memory.total;
  const auto version_1 = [&](std::string_view group) {
    bound_by_groups(memory, roots.cgroup, "/memory", group, kVersion1, machine_bytes);
  };
  const auto version_2 = [&](std::string_view group) {
    bound_by_groups(memory, roots.cgroup, "", group, kVersion2, machine_bytes);
    bound_by_groups(memory, roots.cgroup, "/unified", group, kVersion2, machine_bytes);
  };
  // Memory is counted in one hierarchy: if version 1 names it, version 2 has no files for it.
  bool is_found = false;
  Path path(roots.proc);
  Lines lines(path.with("/self/cgroup"));
  while (const auto line = lines.next()) {  // "4:memory:/a/group", version 2 "0::/a/group"
    const std::size_t first = line->find(':');
    if (first == std::string_view::npos) continue;
    const std::size_t second = line->find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view group = line->substr(second + 1);
    if (contains_memory(line->substr(first + 1, second - first - 1))) {
      is_found = true;
      version_1(group);
    } else if (line->starts_with("0::") && !is_found) {  // the last line
      is_found = true;
      version_2(group);
    }
  }
  if (is_found) return;
  version_1("");  // /proc says nothing, but the mount may be a container's own
  version_2("");
}

std::size_t limit_of(decltype(RLIMIT_AS) resource) noexcept {
  rlimit limit{};
  if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kMost;
  return limit.rlim_cur;
}

// Neither limit ends in a kill, as mmap refuses. But the device's share of them is lost to the
// heap.
void bound_by_resource_limits(HostMemory& memory, const char* proc) noexcept {
  const std::size_t addresses = limit_of(RLIMIT_AS), data = limit_of(RLIMIT_DATA);
  if (addresses == kMost && data == kMost) return;
  memory.total = std::min({memory.total, addresses, data});
  std::array<std::size_t, 6> pages{};  // size, resident, shared, text, unused, data and stack
  Path path(proc);
  Lines lines(path.with("/self/statm"));
  if (auto line = lines.next()) {
    for (std::size_t& count : pages) {
      count = number_in(*line).value_or(0);
      line->remove_prefix(std::min(line->find(' '), line->size() - 1) + 1);
    }
  }
  if (addresses != kMost) memory.addresses = difference(addresses, pages[0] * page_bytes());
  if (data != kMost) memory.free = std::min(memory.free, difference(data, pages[5] * page_bytes()));
}

}  // namespace

HostMemory host_memory(const HostRoots& roots) noexcept {
  HostMemory memory = machine(roots.proc);
  bound_by_cgroups(memory, roots);
  bound_by_resource_limits(memory, roots.proc);
  memory.free = std::min(memory.free, memory.total);
  return memory;
}

std::optional<std::size_t> configured_capacity() {
  const char* text = std::getenv("EBB_CPU_MEMORY");
  if (!text || !*text) return {};
  if (const std::size_t bytes = parse_bytes(text)) return bytes;
  throw Error("EBB_CPU_MEMORY is '" + std::string(text) +
              "', which is no amount of memory; write it as 8GiB, 512M or 4096");
}

std::size_t host_capacity(const HostMemory& memory, std::size_t held_bytes) noexcept {
  // The rest of the process goes on growing after this reading: its heap (350 bytes for a node of a
  // graph, a packed copy of the weights for a prepared product), stacks, page tables (1/512 of the
  // resident memory). So one sixteenth stays. It is a share of the total, not of the free memory,
  // which would give another fifteen sixteenths of the rest at each call. At least 16 MiB stay, for
  // libraries that grow at first use; at most 1 GiB, since programs do not grow with the machine.
  const std::size_t margin =
      std::clamp(memory.total / 16, std::size_t{16} << 20, std::size_t{1} << 30);
  const std::size_t more = difference(memory.free, margin);
  return std::min(memory.total, held_bytes > kMost - more ? kMost : held_bytes + more);
}

}  // namespace ebb::memory
