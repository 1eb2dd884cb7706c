// Processor time of a thread, for tests of how time grows.
#pragma once
#include <time.h>

#include <algorithm>
#include <limits>

namespace ebb::tests {

// Processor time of the calling thread, independent of other load.
inline double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// The least time of seven runs.
template <class Run>
double least_seconds(const Run& run) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 7; ++i) {
    const double begin = thread_seconds();
    run();
    least = std::min(least, thread_seconds() - begin);
  }
  return least;
}

}  // namespace ebb::tests
