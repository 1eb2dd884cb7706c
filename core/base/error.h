#pragma once
#include <string>

#include "ebb/allocator/error.h"  // Error, OutOfMemory
#include "ebb/core/base/call_site.h"

namespace ebb {

// Shapes or dtypes that an operator does not take, or a feed that does not fit its placeholder.
struct ShapeError : Error {
  using Error::Error;
};

// Use of a session after close().
struct SessionClosed : Error {
  using Error::Error;
};

// A file that is missing, damaged or not what was expected.
struct FileError : Error {
  using Error::Error;
};

// Read of a value on a simulated device, which has none.
struct SimulatedRead : Error {
  using Error::Error;
};

// Request for a derivative that an operator does not have.
struct NotDifferentiable : Error {
  using Error::Error;
};

// A NaN or an infinity found by DetectNan.
struct NotANumber : Error {
  using Error::Error;
};

namespace detail {
// " (file.cpp:12)", " (layer encoder.0, file.cpp:12)"; empty if the line is not known.
std::string at(const memory::Tag& tag);
inline std::string at(CallSite site) {
  return at(memory::Tag{"", site.file, site.line, site.layer_name()});
}
// "[matmul] what is wrong (file.cpp:12)": the form of every message about an operation.
std::string message(const char* what, const std::string& text, CallSite site);

// Throws an E that names this line, or the user's of the surrounding CallSiteScope: "[run] what is
// wrong (train.cpp:7)".
template <class E = Error>
[[noreturn]] void refuse(const char* what, const std::string& text, CallSite site = entry()) {
  throw E(message(what, text, site));
}
// Throws FileError "text (train.cpp:7)"; the text begins with the file's name.
[[noreturn]] void refuse_file(const std::string& text);
}  // namespace detail

}  // namespace ebb
