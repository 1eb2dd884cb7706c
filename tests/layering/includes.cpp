#include "ebb/tests/layering/includes.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include "ebb/tests/layering/rules.h"

namespace ebb::tests {
namespace {

namespace fs = std::filesystem;

bool begins_with_one_of(std::string_view text, const std::vector<std::string_view>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

struct Include {
  std::string header;
  bool quoted = false;
};

std::optional<Include> read_include(std::string_view line) {
  const auto skip_blanks = [&] {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  };
  skip_blanks();
  if (!line.starts_with('#')) return {};
  line.remove_prefix(1);
  skip_blanks();
  const std::string_view word = line.starts_with("define") ? "define EBB_FAMILY" : "include";
  if (!line.starts_with(word)) return {};
  line.remove_prefix(word.size());
  skip_blanks();
  if (!line.starts_with('"') && !line.starts_with('<')) return {};
  const bool quoted = line.front() == '"';
  const size_t end = line.find(quoted ? '"' : '>', 1);
  if (end == std::string_view::npos) return {};
  return Include{std::string(line.substr(1, end - 1)), quoted};
}

const Room& find_room(std::string_view file) {
  static const std::vector<Room> all = rooms();
  const Room* found = nullptr;
  for (const Room& room : all) {
    const bool inside =
        room.path.empty() || (file.starts_with(room.path) && file.size() > room.path.size() &&
                              file[room.path.size()] == '/');
    if (inside && (!found || room.path.size() > found->path.size())) found = &room;
  }
  return *found;
}

std::string judge(const fs::path& tree, const std::string& file, const Include& include) {
  const Room& room = find_room(file);
  const std::string room_name = room.path.empty() ? "the root" : std::string(room.path);

  if (include.header.starts_with("ebb/")) {
    const std::string target = include.header.substr(4);
    if (!include.quoted) return "write \"" + include.header + "\", not <" + include.header + ">";
    if (!fs::exists(tree / target)) return "there is no " + target;
    const bool own = !room.path.empty() && find_room(target).path == room.path;
    const bool knows = begins_with_one_of(target, room.knows) &&
                       (!target.starts_with("allocator/cuda/") || room.path == "kernels/cuda" ||
                        room.path == "tests");
    return own || knows ? "" : room_name + " may not include " + target;
  }
  if (include.header.starts_with("ebb_docs/")) return "";  // made of the pages, tests/docs
  if (include.quoted) return "write \"ebb/...\": includes do not depend on where they stand";
  for (const Outsider& outsider : outsiders()) {
    if (!begins_with_one_of(include.header, outsider.headers)) continue;
    const std::string name(outsider.name);
    if (!begins_with_one_of(file, outsider.places)) return room_name + " may not include " + name;
    if (room.is_public && file.ends_with(".h") && !outsider.in_public_headers)
      return "a public header may not include " + name;
  }
  return "";
}

bool is_source(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".h" || extension == ".cpp" || extension == ".cu" || extension == ".cuh" ||
         extension == ".hpp" || extension == ".inl";
}

}  // namespace

std::string room_of(const std::string& file) { return std::string(find_room(file).path); }

std::string layering_offences(const fs::path& tree) {
  std::vector<std::string> files;
  for (auto entry = fs::recursive_directory_iterator(tree);
       entry != fs::recursive_directory_iterator(); ++entry) {
    const std::string name = entry->path().filename().string();
    const std::string file = fs::relative(entry->path(), tree).generic_string();
    // Skips sources that are not ebb's, and tests/install, which uses an installed ebb.
    if (entry->is_directory() && (name.starts_with('.') || file == "build" ||
                                  file == "third_party" || file == "tests/install"))
      entry.disable_recursion_pending();
    else if (entry->is_regular_file() && is_source(entry->path()))
      files.push_back(file);
  }
  std::sort(files.begin(), files.end());

  std::string offences;
  for (const std::string& file : files) {
    std::ifstream stream(tree / file);
    std::string line;
    for (int number = 1; std::getline(stream, line); ++number) {
      const auto offend = [&](const std::string& offence) {
        offences += file + ":" + std::to_string(number) + ": " + offence + "\n";
      };
      for (const Forbidden& each : kForbidden)
        if (file.starts_with(each.folder) && line.find(each.text) != std::string::npos)
          offend(std::string(each.folder) + " may not have " + std::string(each.text) + ": " +
                 std::string(each.reason));
      const std::optional<Include> include = read_include(line);
      if (!include) continue;
      const std::string offence = judge(tree, file, *include);
      if (!offence.empty()) offend(offence);
    }
  }
  return offences;
}

}  // namespace ebb::tests
