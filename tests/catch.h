// Catch2, version 2 or 3, whichever is installed. Tests include this instead of Catch2 itself.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
namespace ebb::tests {
using Catch::Approx;
}
#else
#include <catch2/catch.hpp>
namespace ebb::tests {
using Catch::Detail::Approx;
}
#endif

#include <string>

namespace ebb::tests {

// "" if function() throws a Type whose message contains `text`; otherwise a description of what
// happened.
template <class Type, class Function>
std::string why_not_thrown(Function&& function, const std::string& text) {
  try {
    function();
  } catch (const Type& error) {
    const std::string message = error.what();
    return message.find(text) != std::string::npos ? "" : "the message was: " + message;
  } catch (const std::exception& error) {
    return std::string("an error of another type: ") + error.what();
  }
  return "nothing was thrown";
}

}  // namespace ebb::tests

// Checks that the expression throws this type with this text in its message: CHECK_ERROR(matmul(a,
// b), ShapeError, "[2, 3]").
#define CHECK_ERROR(expression, Type, text)                                                   \
  CHECK(::ebb::tests::why_not_thrown<Type>([&] { static_cast<void>(expression); }, (text)) == \
        std::string())
