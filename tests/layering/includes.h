// Reads the sources of a tree and holds them to the rules: who includes whom, and forbidden text.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace ebb::tests {

// One line for each offence: "core/tensor/tensor.h:12: core may not include graph/graph.h".
std::vector<std::string> layering_offences(const std::filesystem::path& tree);

// The folder of the rules that this file of the tree is in: "kernels/cpu", or "" for the root.
std::string room_of(const std::string& file);

}  // namespace ebb::tests
