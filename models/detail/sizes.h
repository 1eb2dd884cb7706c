#pragma once
#include <cstdint>
#include <string>

#include "ebb/core/base/error.h"
#include "ebb/core/base/shape.h"

namespace ebb::models {

// Throws Error "[lstm] hidden = 0 is below 1 (file:line)", and for a size that no tensor can have,
// with the line of the CallSiteScope it is called in.
inline void require_size(const char* model, const char* what, std::int64_t size,
                         std::int64_t least = 1) {
  const CallSite site = ebb::detail::entry();
  if (size < least)
    throw Error(ebb::detail::message(
        model,
        std::string(what) + " = " + std::to_string(size) + " is below " + std::to_string(least),
        site));
  if (size > kMaxElements)
    throw Error(ebb::detail::message(
        model, std::string(what) + " = " + std::to_string(size) + " is more than a tensor can have",
        site));
}

}  // namespace ebb::models
