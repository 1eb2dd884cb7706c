#include "ebb/core/base/error.h"

#include "ebb/core/base/called.h"

namespace ebb {

namespace detail {
std::string at(const memory::Tag& tag) {
  if (!tag.line) return {};
  const std::string layer = *tag.layer ? "layer " + std::string(tag.layer) + ", " : "";
  return " (" + layer + tag.file + ":" + std::to_string(tag.line) + ")";
}

std::string message(const char* what, const std::string& text, CallSite site) {
  return "[" + std::string(called() ? called() : what) + "] " + text + at(site);
}

void refuse_file(const std::string& text) { throw FileError(text + at(entry())); }
}  // namespace detail

}  // namespace ebb
