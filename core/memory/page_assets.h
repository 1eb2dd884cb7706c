#pragma once
#include <string_view>

namespace ebb::memory::detail {

// The page before and after its data. cmake/page.cmake makes them of the files in page/ and uPlot.
extern const std::string_view kPageHead, kPageTail;

}  // namespace ebb::memory::detail
