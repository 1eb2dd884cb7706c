#pragma once
#include <span>
#include <string>

#include "ebb/core/memory/comparison.h"

namespace ebb::memory::detail {

std::string comparison_table(const Device& device, std::span<const Measurement> results);

}  // namespace ebb::memory::detail
