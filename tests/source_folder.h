#pragma once
#include <string>

namespace ebb::tests {

// The folder of the sources, for tests that read source files.
std::string source_folder();

}  // namespace ebb::tests
