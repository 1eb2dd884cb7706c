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

namespace detail {
// "[matmul] what is wrong (file.cpp:12)": the one form of every message about an operation.
std::string message(const char* what, const std::string& text, CallSite site);
}  // namespace detail

}  // namespace ebb
