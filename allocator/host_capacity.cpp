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
#include <initializer_list>
#include <string>
#include <string_view>

#include "ebb/allocator/error.h"
#include "ebb/allocator/no_copy.h"
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

// Lines of a file of any length, however the kernel splits its reads. Lines longer than the buffer
// are left out. Does not use the heap.
class Lines : NoCopy {
 public:
  // Opens the file whose path is these parts, one behind the other.
  Lines(std::initializer_list<std::string_view> parts) noexcept {
    std::size_t length = 0;
    for (const std::string_view part : parts) {
      if (part.size() >= text_.size() - length) return;
      length += part.copy(text_.data() + length, part.size());
    }
    text_[length] = '\0';
    file_ = ::open(text_.data(), O_RDONLY | O_CLOEXEC);
  }
  ~Lines() {
    if (file_ >= 0) ::close(file_);
  }

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

  int file_ = -1;
  std::array<char, 4096> text_;
  std::size_t begin_ = 0, end_ = 0;
};

std::size_t difference(std::size_t a, std::size_t b) noexcept { return a > b ? a - b : 0; }

std::size_t page_bytes() noexcept { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

// The numbers in the first lines that begin with these labels, as far as there are any.
template <std::size_t N>
std::array<std::optional<std::size_t>, N> numbers_after(
    Lines&& lines, const std::array<std::string_view, N>& labels) noexcept {
  std::array<std::optional<std::size_t>, N> numbers;
  for (std::size_t found = 0; found < N;) {
    const auto line = lines.next();
    if (!line) break;
    for (std::size_t i = 0; i < N; ++i) {
      if (!line->starts_with(labels[i])) continue;
      ++found;
      numbers[i] = number_in(*line);
    }
  }
  return numbers;
}

HostMemory machine(const char* proc) noexcept {
  const auto bytes = [](std::optional<std::size_t> kibibytes, int pages) {
    if (!kibibytes) return static_cast<std::size_t>(::sysconf(pages)) * page_bytes();
    return *kibibytes > kMost / 1024 ? kMost : *kibibytes * 1024;
  };
  const auto [total, available] =  // "MemAvailable:   12345 kB"
      numbers_after<2>({proc, "/meminfo"}, {"MemTotal:", "MemAvailable:"});
  return {.total = bytes(total, _SC_PHYS_PAGES), .free = bytes(available, _SC_AVPHYS_PAGES)};
}

// Files of one version of cgroups. Version 1 counts a group's children in separate figures.
struct Version {
  std::string_view limit, usage, inactive_file, active_file;
};
constexpr Version kVersion1{"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                            "total_inactive_file ", "total_active_file "};
constexpr Version kVersion2{"/memory.max", "/memory.current", "inactive_file ", "active_file "};

// A group, by the three parts of its folder's path.
struct Group {
  std::string_view root, mount, name;
  const Version& version;

  // The number in the first line of a file; nothing if there is none, as in "max".
  std::optional<std::size_t> number_of(std::string_view file) const noexcept {
    return numbers_after<1>({root, mount, name, file}, {""})[0];
  }
  // Bytes of file cache that are reclaimed before anything is killed: the inactive ones, or half of
  // all if that is more. The kernel's own estimate for MemAvailable does the same.
  std::size_t reclaimable() const noexcept {
    const auto found = numbers_after<2>({root, mount, name, "/memory.stat"},
                                        {version.inactive_file, version.active_file});
    const std::size_t inactive = found[0].value_or(0), active = found[1].value_or(0);
    return std::max(inactive, inactive / 2 + active / 2);
  }
};

// Bounds by one group. Version 1 writes "no limit" as a limit above the machine's memory, which
// bounds nothing.
void bound_by_group(HostMemory& memory, const Group& group, std::size_t machine_bytes) noexcept {
  const auto limit = group.number_of(group.version.limit);
  if (!limit || *limit >= machine_bytes) return;
  memory.total = std::min(memory.total, *limit);
  const std::size_t usage = group.number_of(group.version.usage).value_or(0);
  std::size_t left = difference(*limit, usage);
  if (left >= memory.free) return;  // and memory.stat, the slow one, need not be read
  left = difference(*limit, difference(usage, group.reclaimable()));
  memory.free = std::min(memory.free, left);
}

// Bounds by a group and all groups that contain it. A group that is not there is skipped: a
// container that sees itself at the root of the mount may still find its place on the machine in
// /proc.
void bound_by_groups(HostMemory& memory, Group group, std::size_t machine_bytes) noexcept {
  std::string_view& name = group.name;
  if (name.find("/..") != std::string_view::npos) name = {};  // outside of the mount
  for (;;) {
    while (name.ends_with('/')) name.remove_suffix(1);
    bound_by_group(memory, group, machine_bytes);
    if (name.empty()) return;
    name = name.substr(0, name.rfind('/') + 1);
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
  const auto version_1 = [&](std::string_view name) {
    bound_by_groups(memory, {roots.cgroup, "/memory", name, kVersion1}, machine_bytes);
  };
  const auto version_2 = [&](std::string_view name) {
    for (const std::string_view mount : {"", "/unified"})
      bound_by_groups(memory, {roots.cgroup, mount, name, kVersion2}, machine_bytes);
  };
  // Memory is counted in one hierarchy: if version 1 names it, version 2 has no files for it.
  bool is_found = false;
  Lines lines{roots.proc, "/self/cgroup"};
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
  Lines lines{proc, "/self/statm"};
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
