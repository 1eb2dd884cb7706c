#include "ebb/core/error.h"

#include "ebb/core/op_def.h"

namespace ebb {

namespace detail {
std::string message(const char* what, const std::string& text, CallSite site) {
  std::string result = "[" + std::string(what) + "] " + text;
  if (site.line) result += " (" + std::string(site.file) + ":" + std::to_string(site.line) + ")";
  return result;
}
}  // namespace detail

void Inference::fail(const std::string& text) const {
  std::string all = text;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    all += (i                    ? ", "
            : inputs.size() == 1 ? "; the input is "
                                 : "; inputs are ") +
           inputs[i].to_string();
  throw ShapeError(detail::message(op.name, all, site));
}

}  // namespace ebb
