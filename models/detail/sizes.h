#pragma once
#include <cstdint>
#include <string>

#include "ebb/core/error.h"

namespace ebb::models {

// Throws Error "[lstm] hidden = 0 is below 1 (file:line)".
inline void require_size(const char* model, const char* what, std::int64_t size, CallSite site,
                         std::int64_t least = 1) {
  if (size < least)
    throw Error(ebb::detail::message(
        model,
        std::string(what) + " = " + std::to_string(size) + " is below " + std::to_string(least),
        site));
}

}  // namespace ebb::models
