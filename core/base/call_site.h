#pragma once

namespace ebb {

// The user's source line that asked for something. Public functions take it as their last argument,
// by default their caller's (clang 14 has no std::source_location); the file name is static.
struct CallSite {
  const char* file = "";
  unsigned line = 0;

  // Where the function is called whose default argument this is. Inside a CallSiteScope: the
  // scope's, so that all that the library does for one call is told by that call's line.
  static CallSite here(const char* file = __builtin_FILE(),
                       unsigned line = __builtin_LINE()) noexcept;
  // For what is called often and rarely fails: the line that calls, as it is. What throws says
  // resolved(), which is what here() would have been.
  static constexpr CallSite caller(const char* file = __builtin_FILE(),
                                   unsigned line = __builtin_LINE()) noexcept {
    return {file, line};
  }
  CallSite resolved() const noexcept { return here(file, line); }
};

namespace detail {

// The line that the library works for on the calling thread; without one, line 0.
inline CallSite& entry() noexcept {
  thread_local constinit CallSite site;
  return site;
}

// At the entry of what works through other public functions: models, optimizers, reverse mode.
class CallSiteScope {
 public:
  enum Rank { outermost, innermost };
  // outermost: a line that is set already stays.
  explicit CallSiteScope(CallSite site, Rank rank = outermost) noexcept : previous_(entry()) {
    if (rank == innermost || !previous_.line) entry() = site;
  }
  ~CallSiteScope() { entry() = previous_; }
  CallSiteScope(const CallSiteScope&) = delete;
  CallSiteScope& operator=(const CallSiteScope&) = delete;

 private:
  const CallSite previous_;
};

}  // namespace detail

inline CallSite CallSite::here(const char* file, unsigned line) noexcept {
  const CallSite& entry = detail::entry();
  return entry.line ? entry : CallSite{file, line};
}

}  // namespace ebb
