#pragma once
#include <string>

namespace ebb::tests {

// Where the sources are, for tests that read files of theirs.
std::string source_folder();

}  // namespace ebb::tests
