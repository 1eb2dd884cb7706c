#include "ebb/core/base/error.h"

namespace ebb {

namespace detail {
std::string message(const char* what, const std::string& text, CallSite site) {
  std::string result = "[" + std::string(what) + "] " + text;
  if (site.line) result += " (" + std::string(site.file) + ":" + std::to_string(site.line) + ")";
  return result;
}
}  // namespace detail

}  // namespace ebb
