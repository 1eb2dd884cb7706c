#include "ebb/allocator/host_capacity.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "ebb/allocator/error.h"
#include "ebb/allocator/host_source.h"
#include "ebb/allocator/statistics.h"
#include "ebb/tests/allocator/mib.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/heap.h"

namespace ebb::tests {
namespace {

using namespace memory;

std::string text(std::size_t bytes) { return std::to_string(bytes) + "\n"; }

std::string stat(const std::string& prefix, std::size_t inactive, std::size_t active) {
  return prefix + "anon 5\n" + prefix + "inactive_file " + text(inactive) + prefix +
         "active_file " + text(active);
}

// A machine of 8 GiB, 6 of them available, whose cgroups a test writes.
class Machine {
 public:
  Machine() {
    write(
        "proc/meminfo",
        "MemTotal:        8388608 kB\nMemFree:          100000 kB\nMemAvailable:    6291456 kB\n");
  }
  void write(const std::string& path, const std::string& contents) const {
    folder_.file(path, contents);
  }
  void version_2(const std::string& group, const std::string& max, std::size_t current,
                 std::size_t inactive = 0, std::size_t active = 0) const {
    write("cgroup" + group + "/memory.max", max + "\n");
    write("cgroup" + group + "/memory.current", text(current));
    write("cgroup" + group + "/memory.stat", stat("", inactive, active));
  }
  void version_1(const std::string& group, std::size_t limit, std::size_t usage,
                 std::size_t inactive = 0, std::size_t active = 0) const {
    write("cgroup/memory" + group + "/memory.limit_in_bytes", text(limit));
    write("cgroup/memory" + group + "/memory.usage_in_bytes", text(usage));
    write("cgroup/memory" + group + "/memory.stat",
          stat("", 7, 7) + stat("total_", inactive, active));
  }
  void is_in(const std::string& lines) const { write("proc/self/cgroup", lines); }
  std::string path(const std::string& name) const { return folder_.path(name); }
  HostMemory memory() const {
    const std::string proc = folder_.path("proc"), cgroup = folder_.path("cgroup");
    return host_memory({.proc = proc.c_str(), .cgroup = cgroup.c_str()});
  }
  // Total and free MiB, which compare and read easily.
  std::pair<std::size_t, std::size_t> total_and_free() const {
    const HostMemory found = memory();
    return {found.total / kMiB, found.free / kMiB};
  }

 private:
  TemporaryFolder folder_;
};

using Sizes = std::pair<std::size_t, std::size_t>;
const Sizes kUnbounded{8192, 6144};

TEST_CASE("without cgroups a process may have what the machine has") {
  const Machine machine;
  CHECK(machine.total_and_free() == kUnbounded);
}

TEST_CASE("a container that sees itself at the root is bounded by the limit at the root") {
  const Machine two, one;
  two.is_in("0::/\n");
  two.version_2("", text(256 * kMiB), 100 * kMiB);
  CHECK(two.total_and_free() == Sizes{256, 156});
  one.is_in("9:name=systemd:/\n4:memory:/\n0::/\n");
  one.version_1("", 256 * kMiB, 100 * kMiB);
  CHECK(one.total_and_free() == Sizes{256, 156});
}

TEST_CASE("a container is bounded where /proc names its group as the machine does or not at all") {
  const Machine outside, silent;
  outside.is_in("4:cpu,memory:/docker/3f0a\n");
  outside.version_1("", 256 * kMiB, 100 * kMiB);
  CHECK(outside.total_and_free() == Sizes{256, 156});
  silent.version_1("", 256 * kMiB, 100 * kMiB);
  CHECK(silent.total_and_free() == Sizes{256, 156});
  silent.version_2("", text(128 * kMiB), 28 * kMiB);
  CHECK(silent.total_and_free() == Sizes{128, 100});
}

TEST_CASE("a controller that shares its hierarchy with others is found") {
  const Machine machine;
  const std::string controllers = GENERATE("memory", "cpu,memory", "memory,cpu", "a,memory,b");
  machine.is_in("3:xmemory,memoryx:/no\n4:" + controllers + ":/job\n");
  machine.version_1("/job", 256 * kMiB, 100 * kMiB);
  machine.version_1("/no", kMiB, 0);
  CHECK(machine.total_and_free() == Sizes{256, 156});
}

TEST_CASE("every group above a process bounds it, and not those beside it") {
  const Machine machine;
  machine.is_in("0::/user.slice/user-0.slice/job.scope\n");
  machine.version_2("/user.slice", text(300 * kMiB), 290 * kMiB);               // the least free
  machine.version_2("/user.slice/user-0.slice", text(200 * kMiB), 100 * kMiB);  // the least in all
  machine.version_2("/user.slice/user-0.slice/job.scope", "max", 90 * kMiB);
  machine.version_2("/user.slice/user-0.slice/other.scope", text(kMiB), kMiB);
  machine.version_2("/user.slice/user-0.slice/job.scope/below", text(kMiB), kMiB);
  CHECK(machine.total_and_free() == Sizes{200, 10});
  machine.is_in("0::/user.slice/user-0.slice/job.scope/below\n");
  CHECK(machine.total_and_free() == Sizes{1, 0});
  machine.is_in("0::/user.slice\n");
  CHECK(machine.total_and_free() == Sizes{300, 10});
}

TEST_CASE("where both versions are mounted the one that counts memory bounds") {
  const Machine one, two;
  one.is_in("5:cpu:/\n4:memory:/job\n0::/session\n");
  one.version_1("/job", 500 * kMiB, 100 * kMiB);
  one.write("cgroup/unified/session/cgroup.procs", "1\n");
  CHECK(one.total_and_free() == Sizes{500, 400});
  two.is_in("5:cpu:/\n0::/session\n");
  two.write("cgroup/cpu/cgroup.procs", "1\n");
  two.version_2("/unified/session", text(300 * kMiB), 50 * kMiB);
  CHECK(two.total_and_free() == Sizes{300, 250});
}

TEST_CASE("limits that are none bound nothing: max, absurd numbers, more than there is, nonsense") {
  const std::string limit =
      GENERATE("max\n", "max", "9223372036854771712\n", "99999999999999999999999999\n",
               "8589934592\n", "", "\n", "none\n");
  const Machine two, one;
  two.is_in("0::/job\n");
  two.version_2("/job", limit, 8000 * kMiB);
  one.is_in("4:memory:/job\n");
  one.version_1("/job", 0, 8000 * kMiB);
  one.write("cgroup/memory/job/memory.limit_in_bytes", limit);
  CHECK(two.total_and_free() == kUnbounded);
  CHECK(one.total_and_free() == kUnbounded);
}

TEST_CASE("a limit without a usage bounds, and a usage above its limit leaves nothing") {
  const Machine machine;
  machine.is_in("0::/job\n");
  machine.write("cgroup/job/memory.max", text(256 * kMiB));
  CHECK(machine.total_and_free() == Sizes{256, 256});
  machine.version_2("/job", text(256 * kMiB), 300 * kMiB);
  CHECK(machine.total_and_free() == Sizes{256, 0});
}

TEST_CASE("file cache not used lately, or half of all of it, is free") {
  const auto [inactive, active, free] = GENERATE(table<std::size_t, std::size_t, std::size_t>({
      {0, 0, 56},
      {100, 0, 156},
      {100, 20, 156},  // half of all would be less
      {20, 100, 116},
      {300, 0, 256},  // figures of different moments: no more than the limit
  }));
  const Machine two, one;
  two.is_in("0::/job\n");
  two.version_2("/job", text(256 * kMiB), 200 * kMiB, inactive * kMiB, active * kMiB);
  CHECK(two.total_and_free() == Sizes{256, free});
  one.is_in("4:memory:/job\n");
  one.version_1("/job", 256 * kMiB, 200 * kMiB, inactive * kMiB, active * kMiB);
  CHECK(one.total_and_free() == Sizes{256, free});
}

TEST_CASE("what the machine has available bounds a group that may have more") {
  const Machine machine;
  machine.is_in("0::/job\n");
  machine.version_2("/job", text(7000 * kMiB), 100 * kMiB);
  CHECK(machine.total_and_free() == Sizes{7000, 6144});
}

TEST_CASE("a group outside of what is mounted leaves the root's limit") {
  const Machine machine;
  machine.is_in("0::/../other/job\n");
  machine.version_2("", text(256 * kMiB), 0);
  machine.write("other/job/memory.max", text(kMiB));
  CHECK(machine.total_and_free() == Sizes{256, 256});
}

TEST_CASE("files longer than any buffer, with lines longer than that, are read to their end") {
  const Machine machine;
  const std::string long_line(100'000, 'x');
  std::string many_lines;
  while (many_lines.size() < 100'000) many_lines += "5:pids:/a/group/of/others\n";
  machine.is_in(many_lines + "6:memory:/" + long_line + "\n" + many_lines + "0::/job");
  machine.version_2("/job", text(256 * kMiB), 200 * kMiB);
  const std::string padding = long_line + "\nworkingset 1\n" + many_lines;
  machine.write("cgroup/job/memory.stat", padding + stat("", 50 * kMiB, 0) + long_line);
  CHECK(machine.total_and_free() == Sizes{256, 106});
}

TEST_CASE("a line longer than a buffer, or as long, hides none behind it, and its end is no line") {
  const Machine machine;
  machine.version_2("/job", text(256 * kMiB), 0);
  machine.version_2("/other", text(kMiB), 0);
  for (std::size_t length = 4090; length < 4100; ++length)
    for (const char* end : {"\n", "0::/other\n"}) {
      machine.is_in(std::string(length, 'x') + end + "0::/job\n");
      CHECK(machine.total_and_free() == Sizes{256, 256});
    }
}

TEST_CASE("a file that arrives byte by byte is read as a whole") {
  const Machine machine;
  machine.is_in("0::/job\n");
  machine.version_2("/job", text(256 * kMiB), 0);
  std::filesystem::remove(machine.path("cgroup/job/memory.max"));
  REQUIRE(::mkfifo(machine.path("cgroup/job/memory.max").c_str(), 0600) == 0);
  std::thread writer([&] {
    std::ofstream file(machine.path("cgroup/job/memory.max"));
    for (const char byte : text(256 * kMiB)) file << byte << std::flush;
  });
  const HostMemory memory = machine.memory();
  writer.join();
  CHECK(memory.total == 256 * kMiB);
}

TEST_CASE("where nothing can be read there is still a machine") {
  const HostMemory memory = host_memory({.proc = "/no/such/folder", .cgroup = "/nor/this"});
  CHECK(memory.total > 0);
  CHECK(memory.free > 0);
  CHECK(memory.free <= memory.total);
  const std::string long_name = "/" + std::string(10'000, 'x');
  const HostRoots roots{.proc = long_name.c_str(), .cgroup = long_name.c_str()};
  CHECK(host_memory(roots).total == memory.total);
}

TEST_CASE("asking for the host's memory takes nothing from the heap") {
  const Machine machine;
  machine.is_in("0::/a/b\n");
  machine.version_2("/a/b", text(256 * kMiB), 200 * kMiB, kMiB);
  const std::string proc = machine.path("proc"), cgroup = machine.path("cgroup");
  HeapFault::arm();
  const HostMemory memory = host_memory({.proc = proc.c_str(), .cgroup = cgroup.c_str()});
  CHECK(HeapFault::disarm());  // still armed: the heap was not used
  CHECK(memory.free == 57 * kMiB);
}

// A lower limit on this process until the end of its scope.
class ResourceLimit {
 public:
  ResourceLimit(decltype(RLIMIT_AS) resource, std::size_t bytes) : resource_(resource) {
    ::getrlimit(resource, &before_);
    rlimit lower = before_;
    lower.rlim_cur = bytes;
    ::setrlimit(resource, &lower);
  }
  ~ResourceLimit() { ::setrlimit(resource_, &before_); }

 private:
  const decltype(RLIMIT_AS) resource_;
  rlimit before_{};
};

// Bytes in a column of /proc/self/statm.
std::size_t this_process(int column) {
  std::ifstream statm("/proc/self/statm");
  std::size_t pages = 0;
  for (int i = 0; i <= column; ++i) statm >> pages;
  return pages * 4096;
}

TEST_CASE("a limit on data bounds what is free, one on addresses what can be mapped") {
  const HostMemory without = host_memory();
  {
    const std::size_t limit = this_process(5) + 64 * kMiB;
    const ResourceLimit data(RLIMIT_DATA, limit);
    const HostMemory memory = host_memory();
    CHECK(memory.total == std::min(without.total, limit));
    CHECK(memory.free <= 64 * kMiB);
    CHECK(memory.free > 32 * kMiB);
    CHECK(memory.addresses == without.addresses);
  }
  {
    const std::size_t limit = this_process(0) + 64 * kMiB;
    const ResourceLimit addresses(RLIMIT_AS, limit);
    const HostMemory memory = host_memory();
    CHECK(memory.total == std::min(without.total, limit));
    CHECK(memory.free <= memory.total);
    CHECK(memory.addresses <= 64 * kMiB);
    CHECK(memory.addresses > 32 * kMiB);
  }
  CHECK(host_memory().total == without.total);
}

TEST_CASE("a capacity leaves a sixteenth of all memory to the process, 16 MiB to 1 GiB") {
  const auto [total, margin] = GENERATE(table<std::size_t, std::size_t>({
      {64, 16},
      {256, 16},
      {1024, 64},
      {8192, 512},
      {1 << 20, 1024},
  }));
  const auto capacity = [total = total](std::size_t free, std::size_t held) {
    return host_capacity({.total = total * kMiB, .free = free * kMiB}, held * kMiB) / kMiB;
  };
  CHECK(capacity(total, 0) == total - margin);
  CHECK(capacity(total / 2, 0) == total / 2 - margin);
  CHECK(capacity(total / 2, total / 4) == total / 4 + total / 2 - margin);
  CHECK(capacity(margin, 5) == 5);  // what is held is never taken back
  CHECK(capacity(0, 5) == 5);
  CHECK(capacity(total, total) == total);
  CHECK(host_capacity({.total = ~std::size_t{0}, .free = ~std::size_t{0}}, ~std::size_t{0}) ==
        ~std::size_t{0});
}

// A sanitizer's own mappings count as data and exceed any limit that would bound the device.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE(
    "what the host gives is read again as the device grows, and ends before the kernel does") {
  ::unsetenv("EBB_CPU_MEMORY");
  constexpr std::size_t kPiece = 4 * kMiB, kAddresses = 1024 * kMiB;
  HostSource source;
  auto* const base = static_cast<std::byte*>(source.reserve(kAddresses));
  REQUIRE(base);
  REQUIRE(source.commit(base, kPiece));  // with as much as the machine has
  std::size_t committed = kPiece;
  {
    const ResourceLimit data(RLIMIT_DATA, this_process(5) + 256 * kMiB);
    while (committed < kAddresses && source.commit(base + committed, kPiece)) {
      std::memset(base + committed, 1, kPiece);
      committed += kPiece;
    }
  }
  CHECK(committed > 64 * kMiB);
  CHECK(committed <= kPiece + (256 - 16) * kMiB);  // the margin is left to the rest of the process
  CHECK(source.commit(base + committed, kPiece));
  CHECK(source.decommit(base, committed + kPiece));
  source.unreserve(base, kAddresses);
}
#endif

// An environment variable until the end of its scope.
struct Variable {
  Variable(const char* variable, const char* value) : name(variable) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name); }
  const char* const name;
};

TEST_CASE("EBB_CPU_MEMORY configures a capacity, and is refused when it is no size") {
  ::unsetenv("EBB_CPU_MEMORY");
  CHECK(configured_capacity() == std::nullopt);
  const auto with = [](const char* value) {
    const Variable variable("EBB_CPU_MEMORY", value);
    return configured_capacity();
  };
  CHECK(with("") == std::nullopt);
  CHECK(with("512M") == 512 * kMiB);
  CHECK(with("8GiB") == 8192 * kMiB);
  CHECK(with("1048576") == kMiB);
  for (const char* value : {"0", "lots", "8GB", "-1", "8 GiB", "1e9", "99999999999999999999"})
    CHECK_ERROR(with(value), Error, std::string("EBB_CPU_MEMORY is '") + value + "'");
}

TEST_CASE("a size is bytes, or a number and K, M, G or T with or without iB") {
  CHECK(parse_bytes("0") == 0);
  CHECK(parse_bytes("4097") == 4097);
  CHECK(parse_bytes("3K") == 3072);
  CHECK(parse_bytes("3kiB") == 3072);
  CHECK(parse_bytes("2T") == std::size_t{2} << 40);
  CHECK(parse_bytes("16777215T") == std::size_t{16777215} << 40);
  for (const char* text : {"", "K", "iB", "3i", "3KB", "3KiBs", "3 K", "+3", "3.5G", "16777216T"})
    CHECK(parse_bytes(text) == 0);
}

}  // namespace
}  // namespace ebb::tests
