// Reads the sources of a tree and checks their includes, and text that they may not have, against
// the rules.
#pragma once

#include <filesystem>
#include <string>

namespace ebb::tests {

// Returns a line for each offence: "core/tensor/tensor.h:12: core may not include graph/graph.h".
std::string layering_offences(const std::filesystem::path& tree);

// Returns the folder of the rules that holds this file: "kernels/cpu", or "" for the root.
std::string room_of(const std::string& file);

}  // namespace ebb::tests
