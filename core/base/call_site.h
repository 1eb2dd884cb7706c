#pragma once

#include <string_view>

#include "ebb/allocator/no_copy.h"

namespace ebb {

namespace detail {
// Names of layers, one after the other, each with a 0 at its end; the first is empty. Never freed.
inline char layer_names[1 << 20];
// Position there of the name of a scope with this prefix, "encoder.0.". 0 without a prefix, and for
// a new name where the array is full.
unsigned layer_number(std::string_view prefix);
}  // namespace detail

// User's source line that asked for something, and the layer of a model that it came through.
// Public functions take it as their last argument, which defaults to their caller's line (clang 14
// has no std::source_location). The file name is static. 16 bytes, which pass in two registers.
struct CallSite {
  const char* file = "";
  unsigned line = 0;
  unsigned layer = 0;  // into layer_names: Parameters::layer()

  // Line that calls the function whose default argument this is. Inside a CallSiteScope it is the
  // scope's line, so that everything the library does for one call names that call.
  static CallSite here(const char* file = __builtin_FILE(),
                       unsigned line = __builtin_LINE()) noexcept;
  // For functions that are called often and rarely fail: the calling line as it is, without a look
  // at the scope. Code that throws uses resolved(), which gives the line of here().
  static constexpr CallSite caller(const char* file = __builtin_FILE(),
                                   unsigned line = __builtin_LINE()) noexcept {
    return {file, line};
  }
  // This line for what the layer does.
  constexpr CallSite in(unsigned within) const noexcept { return {file, line, within}; }
  const char* layer_name() const noexcept { return detail::layer_names + layer; }
  CallSite resolved() const noexcept { return here(file, line); }
};

namespace detail {

// Line that the library works for on the calling thread; line 0 if there is none.
inline CallSite& entry() noexcept {
  thread_local constinit CallSite site;
  return site;
}

// Opened by functions that call other public functions: models, optimizers, reverse mode.
class CallSiteScope : NoCopy {
 public:
  enum Rank { outermost, innermost };
  // With `outermost`, a line that is already set stays. A layer within another one replaces it.
  explicit CallSiteScope(CallSite site, Rank rank = outermost) noexcept : previous_(entry()) {
    if (rank == innermost || !previous_.line)
      entry() = site;
    else if (site.layer)
      entry().layer = site.layer;
  }
  ~CallSiteScope() { entry() = previous_; }

 private:
  const CallSite previous_;
};

}  // namespace detail

inline CallSite CallSite::here(const char* file, unsigned line) noexcept {
  const CallSite& entry = detail::entry();
  return entry.line ? entry : CallSite{file, line};
}

}  // namespace ebb
