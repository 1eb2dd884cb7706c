// The programs print exactly what README and the guide quote.
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

// A quotation on a page: the command in its first line ("$ two_sessions"), and the lines after it.
struct Quotation {
  std::string command;
  Lines lines;
};

Lines lines_of(std::istream&& text) {
  REQUIRE(text);
  Lines lines;
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  return lines;
}

std::vector<Quotation> quotations() {
  std::vector<std::filesystem::path> pages = {kTree / "README.md"};
  for (const auto& entry : std::filesystem::directory_iterator(kTree / "docs/guide"))
    pages.push_back(entry.path());
  std::vector<Quotation> found;
  for (const std::filesystem::path& page : pages) {
    enum { outside, first, quoted, code } state = outside;
    for (const std::string& line : lines_of(std::ifstream(page))) {
      INFO(page << ": " << line);
      if (line.starts_with("```")) {
        state = state != outside ? outside : line == "```" ? first : code;
      } else if (state == first) {
        REQUIRE(line.starts_with("$ "));
        found.push_back({line.substr(2), {}});
        state = quoted;
      } else if (state == quoted) {
        found.back().lines.push_back(line);
      }
    }
  }
  return found;
}

constexpr const char* kFourRanks = "mpirun -n 4 ";

// Starts a program as four ranks, with one thread each; empty without MPI.
std::string mpirun() {
#ifdef EBB_MPIRUN
  return "EBB_THREADS=1 OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 " EBB_MPIRUN
         " -n 4 ";
#else
  return "";
#endif
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

TEST_CASE("programs print what README and the guide quote") {
  std::set<std::string> missing = programs();
  std::map<std::string, Ended> runs;
  for (const Quotation& quotation : quotations()) {
    missing.erase(quotation.command);
    if (!runs.contains(quotation.command)) {
      std::string program = quotation.command, launcher;
      if (program.starts_with(kFourRanks)) {
        launcher = mpirun();
        if (launcher.empty()) continue;  // no MPI here
        program.erase(0, std::string_view(kFourRanks).size());
      }
      runs.emplace(quotation.command, run(program, "&1", launcher));
    }
    const Ended& ended = runs.at(quotation.command);
    INFO(quotation.command << " printed\n" << ended.output);
    CHECK(ended.code == 0);
    CHECK(matches(quotation.lines, lines_of(std::istringstream(ended.output))));
  }
  CHECK(missing == std::set<std::string>());
}

}  // namespace ebb::tests
