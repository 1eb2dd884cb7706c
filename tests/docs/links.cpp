// The pages link to files and headings that are there.
#include <cctype>
#include <filesystem>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/source_folder.h"

namespace ebb::tests {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> pages() {
  const fs::path tree = source_folder();
  std::vector<fs::path> found = {tree / "README.md", tree / "CHANGELOG.md"};
  for (const auto& entry : fs::recursive_directory_iterator(tree / "docs"))
    if (entry.path().extension() == ".md") found.push_back(entry.path());
  return found;
}

// Whether the page has a heading that GitHub gives this name: "## What will it take?" is
// "what-will-it-take".
bool has_heading(const fs::path& page, const std::string& name) {
  std::istringstream lines(contents_of(page.string()));
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("#")) continue;
    std::string made;
    for (const char c : line.substr(line.find(' ') + 1))
      if (c == ' ' || c == '-' || std::isalnum(static_cast<unsigned char>(c)))
        made += c == ' ' ? '-' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    if (made == name) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("Pages link to files and headings that are there") {
  static const std::regex link(R"re((?:\]\(|src(?:set)?=")([\w./-]*)(?:#([\w-]*))?[)"])re");
  for (const fs::path& page : pages()) {
    const std::string text = contents_of(page.string());
    for (std::sregex_iterator at(text.begin(), text.end(), link), end; at != end; ++at) {
      const std::string file = (*at)[1], heading = (*at)[2];
      const fs::path target = file.empty() ? page : page.parent_path() / file;
      INFO(page.string() << " links to " << at->str());
      CHECK(fs::exists(target));
      if (!heading.empty()) CHECK(has_heading(target, heading));
    }
  }
}

}  // namespace ebb::tests
