// Reads what the linker knows of each folder's objects: a declaration of one's own gets round the
// includes, but not round this.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace ebb::tests {

struct Symbols {
  std::set<std::string> defined;
  std::map<std::string, std::string> needed;  // name → an object that needs it
};

// The symbols of namespace ebb, by folder as in the rules, from the output of `nm -C -A`.
std::map<std::string, Symbols> read_symbols(const std::string& nm_output,
                                            const std::string& build_dir);

// One line for each symbol that a folder takes from a folder it may not know and that is no seam.
std::vector<std::string> symbol_offences(const std::map<std::string, Symbols>& by_folder);

}  // namespace ebb::tests
