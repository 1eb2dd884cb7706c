#pragma once

namespace ebb {

// What a kernel or a device answers: done, or what went wrong. Not to be ignored.
struct [[nodiscard]] Status {
  const char* problem = nullptr;  // null: done; static text
  int code = 0;                   // of the library that found it, if any
  // Nothing has been written. Otherwise whatever was to be written may have been, in part.
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
