// CHECK_ERROR for calls in this file: the message must also give a line of it.
#pragma once
#include "ebb/tests/catch.h"

namespace ebb::tests {

// "" if call() throws a Type whose message contains `text` and a line of `file`; otherwise a
// description of what happened.
template <class Type, class Call>
std::string why_not_refused(const Call& call, const std::string& text, const char* file) {
  const std::string why = why_not_thrown<Type>(call, text);
  return why.empty() ? why_not_thrown<Type>(call, "(" + std::string(file) + ":") : why;
}

}  // namespace ebb::tests

#define EBB_REFUSES(expression, Type, text)                                                 \
  CHECK(::ebb::tests::why_not_refused<Type>([&] { static_cast<void>(expression); }, (text), \
                                            __FILE__) == std::string())
