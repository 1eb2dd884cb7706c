// Checks the symbols that each folder's objects exchange. A source that declares a function itself
// evades the check of includes, but not this one.
#pragma once

#include <map>
#include <set>
#include <string>

namespace ebb::tests {

struct Symbols {
  std::set<std::string> defined;
  std::map<std::string, std::string> needed;  // name → an object that needs it
};

// Symbols of namespace ebb, by folder of the rules, from the output of `nm -C -A`.
std::map<std::string, Symbols> read_symbols(const std::string& nm_output,
                                            const std::string& build_dir);

// Returns a line for each symbol that a folder takes from a folder that it may not use, seams
// excepted.
std::string symbol_offences(const std::map<std::string, Symbols>& by_folder);

}  // namespace ebb::tests
