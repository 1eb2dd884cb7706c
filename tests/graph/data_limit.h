// Limits the process, for a scope, to so many bytes of plain memory more than it has now.
#pragma once
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

#include "ebb/core/device/runtime.h"

namespace ebb::tests {

class DataLimit {
 public:
  explicit DataLimit(std::size_t bytes) {
    std::ifstream file("/proc/self/statm");
    std::size_t pages = 0;  // the sixth number is data and stack
    for (int i = 0; i < 6; ++i) file >> pages;
    ::getrlimit(RLIMIT_DATA, &before_);
    rlimit now = before_;
    now.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
    ::setrlimit(RLIMIT_DATA, &now);
  }
  ~DataLimit() { ::setrlimit(RLIMIT_DATA, &before_); }
  DataLimit(const DataLimit&) = delete;
  DataLimit& operator=(const DataLimit&) = delete;

  // Whether the limit can be tried: a device made for tests takes its memory elsewhere, and a
  // sanitizer ends the process when its own allocation is refused.
  static bool can_be_tried() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#else
    return Device::cpu().runtime().is_host();
#endif
  }

 private:
  rlimit before_{};
};

}  // namespace ebb::tests
