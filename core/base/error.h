#pragma once
#include <string>

#include "ebb/allocator/error.h"  // Error, OutOfMemory
#include "ebb/core/base/call_site.h"

namespace ebb {

// Shapes or dtypes that an operator does not take, a feed that does not fit its placeholder.
class ShapeError : public Error {
 public:
  using Error::Error;
};

// A session used after close().
class SessionClosed : public Error {
 public:
  using Error::Error;
};

// A file that is missing, damaged or not what was expected.
class FileError : public Error {
 public:
  using Error::Error;
};

// The value of a tensor of a simulated device was asked for; it has none.
class SimulatedRead : public Error {
 public:
  using Error::Error;
};

// A derivative was asked for that an operator does not have.
class NotDifferentiable : public Error {
 public:
  using Error::Error;
};

// A NaN, or an infinity, that DetectNan was asked to find.
class NotANumber : public Error {
 public:
  using Error::Error;
};

namespace detail {
// " (file.cpp:12)", or nothing where the line is not known.
std::string at(CallSite site);
// "[matmul] what is wrong (file.cpp:12)": the one form of every message about an operation.
std::string message(const char* what, const std::string& text, CallSite site);

// Throws an E about what the library does for the user's line, that of the scope it is in: "[run]
// what is wrong (train.cpp:7)".
template <class E = Error>
[[noreturn]] void refuse(const char* what, const std::string& text) {
  throw E(message(what, text, entry()));
}
}  // namespace detail

}  // namespace ebb
