// So much more plain memory than the process has now and no more, for a scope.
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
    std::size_t pages = 0;  // the sixth is data and stack
    for (int i = 0; i < 6; ++i) file >> pages;
    ::getrlimit(RLIMIT_DATA, &before_);
    rlimit now = before_;
    now.rlim_cur = pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) + bytes;
    ::setrlimit(RLIMIT_DATA, &now);
  }
  ~DataLimit() { ::setrlimit(RLIMIT_DATA, &before_); }
  DataLimit(const DataLimit&) = delete;
  DataLimit& operator=(const DataLimit&) = delete;

  // A sanitizer ends the process where malloc refuses, which it does before the device does where
  // the CPU is one made for tests.
  static bool can_be_tried() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return Device::cpu().runtime().is_host();
#else
    return true;
#endif
  }

 private:
  rlimit before_{};
};

}  // namespace ebb::tests
