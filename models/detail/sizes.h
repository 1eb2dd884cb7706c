#pragma once
#include <cstdint>
#include <string>

#include "ebb/core/error.h"
#include "ebb/core/shape.h"

namespace ebb::models {

// Throws Error "[lstm] hidden = 0 is below 1 (file:line)", and for a size that no tensor can have.
inline void require_size(const char* model, const char* what, std::int64_t size, CallSite site,
                         std::int64_t least = 1) {
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
