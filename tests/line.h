#pragma once
#include <string>

#include "ebb/tests/catch.h"

namespace ebb::tests {

// A line of the calling file as error messages write it.
inline std::string line(int number, const char* file = __builtin_FILE()) {
  return "(" + std::string(file) + ":" + std::to_string(number) + ")";
}

// As why_not_thrown(). The message must have the line, too.
template <class Type, class Function>
std::string why_not_thrown_at(const std::string& line, const Function& function,
                              const std::string& text) {
  const std::string why = why_not_thrown<Type>(function, text);
  return why.empty() ? why_not_thrown<Type>(function, line) : why;
}

}  // namespace ebb::tests

// CHECK_ERROR of which the message must also have the check's own line, perhaps after a layer.
#define CHECK_ERROR_HERE(expression, Type, text)            \
  CHECK(::ebb::tests::why_not_thrown_at<Type>(              \
            ::ebb::tests::line(__builtin_LINE()).substr(1), \
            [&] { static_cast<void>(expression); }, (text)) == std::string())
