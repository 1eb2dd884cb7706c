#include "ebb/core/base/error.h"

#include "ebb/core/base/called.h"

namespace ebb {

namespace detail {
std::string at(CallSite site) {
  if (!site.line) return {};
  return " (" + std::string(site.file) + ":" + std::to_string(site.line) + ")";
}

std::string message(const char* what, const std::string& text, CallSite site) {
  return "[" + std::string(called() ? called() : what) + "] " + text + at(site);
}

void refuse_file(const std::string& text) { throw FileError(text + at(entry())); }
}  // namespace detail

}  // namespace ebb
