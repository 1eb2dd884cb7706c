#pragma once
#include <cstddef>
#include <string>

namespace ebb::memory {

// Bytes for columns: "512 B", "702.0 KiB", "1.5 MiB". Always one decimal, so that figures line up.
std::string figure(std::size_t bytes);
// Exact bytes: "718,848".
std::string exact_figure(std::size_t bytes);
// Difference between two figures, with its sign: "-120.5 KiB", "+512 B", "0 B".
std::string change_figure(std::size_t from, std::size_t to);

}  // namespace ebb::memory
