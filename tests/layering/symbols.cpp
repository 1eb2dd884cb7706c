#include "ebb/tests/layering/symbols.h"

#include <algorithm>
#include <sstream>

#include "ebb/tests/layering/includes.h"
#include "ebb/tests/layering/rules.h"

namespace ebb::tests {
namespace {

// Whether `folder` is `path` or lies below it: "kernels/cpu" may define the symbols of "kernels".
bool inside(const std::string& folder, std::string_view path) {
  return folder == path || (folder.starts_with(path) && folder[path.size()] == '/');
}

// Adds the folders whose headers `folder` may include, and the folders that those include in turn.
void add_known(const std::string& folder, std::set<std::string>& known) {
  const std::vector<Room> all = rooms();
  for (const Room& room : all) {
    if (room.path != folder) continue;
    for (const std::string_view prefix : room.knows)
      for (const Room& other : all) {
        const std::string path = std::string(other.path) + "/";
        const bool named = path.starts_with(prefix) || room_of(std::string(prefix)) == other.path;
        if (other.path.empty() || !named) continue;
        if (known.insert(std::string(other.path)).second) add_known(std::string(other.path), known);
      }
  }
}

// Folders whose symbols `folder` may use.
std::set<std::string> known_to(const std::string& folder) {
  std::set<std::string> known = {folder};
  add_known(folder, known);
  return known;
}

bool is_seam(const std::string& folder, const std::string& symbol, const std::string& defined_in) {
  return std::any_of(kSeams.begin(), kSeams.end(), [&](const Seam& seam) {
    if (!inside(defined_in, seam.defined_in)) return false;
    if (!inside(folder, "core") && (seam.beside_core.empty() || !inside(folder, seam.beside_core)))
      return false;
    // The name of a template instance begins with its return type.
    const size_t at = symbol.find(seam.symbol);
    return at != std::string::npos && at < symbol.find('(') && (at == 0 || symbol[at - 1] == ' ');
  });
}

// Source name of an object that joins several sources of a folder:
// "Unity/unity_core-ops-3_cxx.cxx.o" gives core/ops/3.
std::string unjoined(const std::string& object) {
  constexpr std::string_view begin = "Unity/unity_", end = "_cxx";
  if (!object.starts_with(begin)) return object;
  std::string name = object.substr(begin.size(), object.rfind(end) - begin.size());
  std::ranges::replace(name, '-', '/');
  return name;
}

}  // namespace

std::map<std::string, Symbols> read_symbols(const std::string& nm_output,
                                            const std::string& build_dir) {
  std::map<std::string, Symbols> folders;
  std::istringstream stream(nm_output);
  for (std::string line; std::getline(stream, line);) {
    // "<object>:<address or nothing> <kind> <name>"; blanks differ between versions of nm.
    const size_t colon = line.find(".o:");
    if (colon == std::string::npos) continue;
    std::string object = line.substr(0, colon + 2);
    std::istringstream rest(line.substr(colon + 3));
    std::string kind, name;
    rest >> kind;
    if (kind.size() > 1) rest >> kind;
    std::getline(rest >> std::ws, name);
    if (kind.size() != 1 || name.empty()) continue;
    if (object.starts_with(build_dir)) object.erase(0, build_dir.size());
    if (const size_t dir = object.find(".dir/"); dir != std::string::npos) object.erase(0, dir + 5);
    if (object.starts_with("./")) object.erase(0, 2);
    object = unjoined(object);

    Symbols& symbols = folders[room_of(object)];
    if (kind == "U" || kind == "w" || kind == "v")
      symbols.needed.emplace(name, object);
    else if (kind == "u" || (kind[0] >= 'A' && kind[0] <= 'Z'))
      symbols.defined.insert(name);
  }
  return folders;
}

std::string symbol_offences(const std::map<std::string, Symbols>& by_folder) {
  std::string offences;
  for (const auto& [folder, symbols] : by_folder) {
    const std::set<std::string> known = known_to(folder);
    for (const auto& [name, object] : symbols.needed) {
      std::string offender;
      bool fine = false;
      for (const auto& [other, theirs] : by_folder) {
        if (!theirs.defined.contains(name)) continue;
        if (known.contains(other) || is_seam(folder, name, other)) fine = true;
        offender = other;
      }
      if (!fine && !offender.empty())
        offences +=
            object + ": " + folder + " may not call " + name + ", which " + offender + " defines\n";
    }
  }
  return offences;
}

}  // namespace ebb::tests
