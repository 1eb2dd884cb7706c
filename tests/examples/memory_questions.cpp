// The programs print exactly what docs/memory.md quotes.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <span>
#include <sstream>

#include "ebb/tests/catch.h"
#include "ebb/tests/examples/run.h"
#include "ebb/tests/source_folder.h"

namespace ebb::tests {
namespace {

const std::filesystem::path kTree = source_folder();

using Lines = std::vector<std::string>;

// A quotation on the page: the program named in its first line ("$ two_sessions"), and the lines
// after it.
struct Quotation {
  std::string program;
  Lines lines;
};

Lines lines_of(std::istream&& text) {
  REQUIRE(text);
  Lines lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

Lines page() { return lines_of(std::ifstream(kTree / "docs/memory.md")); }

std::vector<Quotation> quotations() {
  std::vector<Quotation> found;
  enum { outside, first, quoted, other } state = outside;
  for (const std::string& line : page()) {
    if (line.starts_with("```")) {
      state = state == outside ? first : outside;
    } else if (state == first) {
      state = line.starts_with("$ ") ? quoted : other;
      if (state == quoted) found.push_back({line.substr(2), {}});
    } else if (state == quoted) {
      found.back().lines.push_back(line);
    }
  }
  return found;
}

// Shortens files to their names in the tree, whatever path the compiler was given, and removes the
// digits of losses, which depend on the processor. Losses have at least three decimals, other
// figures one.
std::string normalized(const std::string& line) {
  static const std::regex file(R"([^ (]*/(?=\w+\.cpp:))"), loss(R"(\d\.\d{3,})");
  return std::regex_replace(std::regex_replace(line, file, "examples/"), loss, "#");
}

// Compares line by line; "..." stands for any number of lines.
bool matches(std::span<const std::string> quoted, std::span<const std::string> printed) {
  if (quoted.empty()) return printed.empty();
  if (quoted[0] == "...") {
    for (std::size_t skipped = 0; skipped <= printed.size(); ++skipped)
      if (matches(quoted.subspan(1), printed.subspan(skipped))) return true;
    return false;
  }
  return !printed.empty() && normalized(quoted[0]) == normalized(printed[0]) &&
         matches(quoted.subspan(1), printed.subspan(1));
}

// The programs whose first line asks a question.
std::set<std::string> programs() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(kTree / "examples")) {
    if (entry.path().extension() != ".cpp") continue;
    const Lines source = lines_of(std::ifstream(entry.path()));
    const bool asks = source[0].ends_with("?");
    CHECK(source.size() < (asks ? 80 : 100));
    if (asks) names.insert(entry.path().stem());
  }
  return names;
}

}  // namespace

TEST_CASE("the programs that answer questions print what the page on memory quotes") {
  std::set<std::string> quoted;
  std::map<std::string, Ended> runs;
  for (const Quotation& quotation : quotations()) {
    if (quoted.insert(quotation.program).second)
      runs.emplace(quotation.program, run(quotation.program));
    const Ended& ended = runs.at(quotation.program);
    INFO(quotation.program << " printed\n" << ended.output);
    CHECK(ended.code == 0);
    CHECK(matches(quotation.lines, lines_of(std::istringstream(ended.output))));
  }
  CHECK(quoted == programs());
}

TEST_CASE("the page on memory links to files that are there") {
  const std::regex link(R"(\]\(([^)#: ]+)\))");
  std::size_t links = 0;
  for (const std::string& line : page())
    for (std::sregex_iterator at(line.begin(), line.end(), link), end; at != end; ++at, ++links) {
      INFO(line);
      CHECK(std::filesystem::exists(kTree / "docs" / (*at)[1].str()));
    }
  CHECK(links > 10);
}

}  // namespace ebb::tests
