#pragma once

namespace ebb {

// The answer of a kernel or a device: done, or a problem. Not to be ignored.
struct [[nodiscard]] Status {
  const char* problem = nullptr;  // null: done; static text
  int code = 0;                   // of the library that found it, if any
  // True: nothing has been written. Otherwise outputs may have been written in part.
  bool refused = false;

  constexpr bool ok() const noexcept { return problem == nullptr; }
  static constexpr Status refuse(const char* problem, int code = 0) noexcept {
    return {problem, code, true};
  }
  static constexpr Status fail(const char* problem, int code = 0) noexcept {
    return {problem, code, false};
  }
};

}  // namespace ebb
