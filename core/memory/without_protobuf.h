#pragma once
#include <string>

namespace ebb::detail {

// In place of what needs protobuf, in a build without it: throws Error that says how to get it.
[[noreturn]] void refuse_without_protobuf(const std::string& path, const char* what);

}  // namespace ebb::detail
