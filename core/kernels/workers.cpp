#include "ebb/core/kernels/workers.h"

#include <sched.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <string>
#include <thread>
#include <vector>

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

#include "ebb/core/base/error.h"
#include "ebb/core/base/log.h"

namespace ebb {
namespace {

// The time that a thread looks for work, or for the end of work, before it sleeps. Longer than the
// gap between two kernels, so that a training step wakes nobody; short enough to leave an idle CPU
// idle.
constexpr std::chrono::microseconds kSpin{30};

inline void pause() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#else
  std::this_thread::yield();
#endif
}

// Waits until changed() holds; after kSpin it calls sleep(), which may return early, in between.
template <class Changed, class Sleep>
void wait_until(const Changed& changed, const Sleep& sleep) {
  if (changed()) return;
  const auto deadline = std::chrono::steady_clock::now() + kSpin;
  do {
    for (int i = 0; i < 32; ++i) {
      if (changed()) return;
      pause();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  while (!changed()) sleep();
}

int available_processors() noexcept {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

int initial_threads() noexcept {
  if (const char* text = std::getenv("EBB_THREADS")) {
    char* end = nullptr;
    const long threads = std::strtol(text, &end, 10);
    if (end != text && *end == '\0' && threads >= 1 && threads <= 4096)
      return static_cast<int>(threads);
    if (*text)
      detail::log_warning("EBB_THREADS is '" + std::string(text) +
                          "', which is no number from 1 to 4096: as if it were not set");
  }
  return available_processors();
}

}  // namespace

// Each thread has a contiguous share of a job's pieces, always the same for a given number of
// pieces. Data that a piece reads again in the next job is then in that thread's cache. A thread
// that is done takes from the shares of others.
//
// A share is one word: the job's number in the upper half, the pieces not yet taken in the lower.
// Taking a piece is a compare-and-swap on it. It succeeds only while the job is the current one and
// has a piece left, and the job cannot end before that piece is done. A thread that comes late
// therefore finds nothing to take, and run() need not wait for threads that never woke.
struct Workers::Impl {
  struct alignas(64) Share {
    std::atomic<std::uint64_t> state{0};
    std::atomic<std::int64_t> end{0};
  };

  int threads = initial_threads();
  std::vector<Share> shares{static_cast<std::size_t>(threads)};
  std::vector<std::thread> started;

  alignas(64) std::atomic<bool> busy{false};
  std::atomic<void (*)(const void*, std::int64_t)> call{nullptr};
  std::atomic<const void*> context{nullptr};
  alignas(64) std::atomic<std::uint32_t> job{0};  // sleeping threads wait for its change
  std::atomic<bool> stopping{false};
  alignas(64) std::atomic<std::uint32_t> unfinished{0};

  // Takes and does pieces of a job until none is left; returns how many.
  std::uint32_t work(std::uint32_t number, std::size_t self) {
    std::uint32_t done = 0;
    for (std::size_t i = 0; i < shares.size(); ++i) {
      Share& share = shares[(self + i) % shares.size()];
      std::uint64_t state = share.state.load(std::memory_order_acquire);
      while (state >> 32 == number && (state & 0xFFFFFFFFu) != 0) {
        const auto function = call.load(std::memory_order_relaxed);
        const void* argument = context.load(std::memory_order_relaxed);
        const std::int64_t end = share.end.load(std::memory_order_relaxed);
        const std::int64_t piece = end - static_cast<std::int64_t>(state & 0xFFFFFFFFu);
        if (!share.state.compare_exchange_weak(state, state - 1, std::memory_order_acq_rel,
                                               std::memory_order_acquire))
          continue;
        function(argument, piece);
        ++done;
        state = share.state.load(std::memory_order_acquire);
      }
    }
    return done;
  }

  void finish(std::uint32_t pieces) {
    if (pieces > 0 && unfinished.fetch_sub(pieces, std::memory_order_acq_rel) == pieces)
      unfinished.notify_one();
  }

  void thread_main(std::size_t self, std::uint32_t seen) {
    flush_denormals_on_this_thread();
    while (true) {
      wait_until([&] { return job.load(std::memory_order_acquire) != seen; },
                 [&] { job.wait(seen, std::memory_order_acquire); });
      if (stopping.load(std::memory_order_acquire)) return;
      seen = job.load(std::memory_order_acquire);
      finish(work(seen, self));
    }
  }

  // If the system refuses a thread, others take its share.
  void start() noexcept {
    const std::uint32_t seen = job.load(std::memory_order_relaxed);
    try {
      started.reserve(shares.size());
      for (std::size_t i = 1; i < shares.size(); ++i)
        started.emplace_back([this, i, seen] { thread_main(i, seen); });
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    }
  }

  void stop() {
    stopping.store(true, std::memory_order_release);
    job.fetch_add(1, std::memory_order_acq_rel);
    job.notify_all();
    for (std::thread& thread : started) thread.join();
    started.clear();
    stopping.store(false, std::memory_order_release);
  }
};

Workers& Workers::instance() {
  static Workers workers;
  return workers;
}

Workers::Workers() : impl_(std::make_unique<Impl>()) {}
Workers::~Workers() { impl_->stop(); }

int Workers::threads() const noexcept { return impl_->threads; }

void Workers::set_threads(int threads) {
  if (threads < 1)
    throw Error("[set_threads] at least 1 thread is needed, not " + std::to_string(threads));
  while (impl_->busy.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
  if (threads != impl_->threads) {
    impl_->stop();
    impl_->threads = threads;
    impl_->shares = std::vector<Impl::Share>(static_cast<std::size_t>(threads));
  }
  impl_->busy.store(false, std::memory_order_release);
}

void Workers::run_pieces(std::int64_t pieces, void (*call)(const void*, std::int64_t),
                         const void* context) {
  Impl& impl = *impl_;
  if (pieces <= 1 || impl.threads == 1 || pieces > 0xFFFFFFFF ||
      impl.busy.exchange(true, std::memory_order_acquire)) {
    for (std::int64_t piece = 0; piece < pieces; ++piece) call(context, piece);
    return;
  }
  if (impl.started.empty()) impl.start();

  const std::uint32_t number = impl.job.load(std::memory_order_relaxed) + 1;
  const auto threads = static_cast<std::int64_t>(impl.shares.size());
  impl.call.store(call, std::memory_order_relaxed);
  impl.context.store(context, std::memory_order_relaxed);
  impl.unfinished.store(static_cast<std::uint32_t>(pieces), std::memory_order_relaxed);
  for (std::int64_t i = 0; i < threads; ++i) {
    const std::int64_t begin = pieces * i / threads, end = pieces * (i + 1) / threads;
    Impl::Share& share = impl.shares[static_cast<std::size_t>(i)];
    share.end.store(end, std::memory_order_relaxed);
    share.state.store(std::uint64_t{number} << 32 | static_cast<std::uint64_t>(end - begin),
                      std::memory_order_release);
  }
  impl.job.store(number, std::memory_order_release);
  impl.job.notify_all();

  const std::uint32_t done = impl.work(number, 0);
  impl.unfinished.fetch_sub(done, std::memory_order_acq_rel);
  wait_until([&] { return impl.unfinished.load(std::memory_order_acquire) == 0; },
             [&] {
               const std::uint32_t left = impl.unfinished.load(std::memory_order_acquire);
               if (left != 0) impl.unfinished.wait(left, std::memory_order_acquire);
             });
  impl.busy.store(false, std::memory_order_release);
}

void flush_denormals_on_this_thread() noexcept {
#if defined(__x86_64__) || (defined(__i386__) && defined(__SSE__))
  constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  const unsigned mode = _mm_getcsr();
  if ((mode & (kFlushToZero | kDenormalsAreZero)) != (kFlushToZero | kDenormalsAreZero))
    _mm_setcsr(mode | kFlushToZero | kDenormalsAreZero);
#endif
}

}  // namespace ebb
