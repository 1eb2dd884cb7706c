// docs/coming-from.md and the tests of this folder must hold the same rows.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "ebb/core/files/safetensors.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {
namespace {

struct PageRow {
  std::string name;  // the first cell, without quotes
  std::string ebb;   // the second one
  bool is_stored;    // it is in a table of values, not of programs
  int line;
};

std::string text_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns the cells of "| a | b \| c |" without quotes and surrounding blanks.
std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '\\' && i + 1 < line.size() && line[i + 1] == '|')
      cells.back() += line[++i];
    else if (line[i] == '|')
      cells.emplace_back();
    else if (line[i] != '`')
      cells.back() += line[i];
  }
  cells.pop_back();  // the text after the last bar
  for (std::string& cell : cells) {
    cell.erase(0, cell.find_first_not_of(' '));
    cell.erase(cell.find_last_not_of(' ') + 1);
  }
  return cells;
}

std::vector<PageRow> page_rows() {
  std::istringstream page(text_of(source_folder() + "/docs/coming-from.md"));
  std::vector<PageRow> rows;
  bool is_stored = false;
  std::string line;
  for (int number = 1; std::getline(page, line); ++number) {
    if (line.empty() || line[0] != '|' || line.starts_with("|---")) continue;
    const std::vector<std::string> cells = cells_of(line);
    INFO("line " << number << " of docs/coming-from.md");
    REQUIRE(cells.size() == 3);
    if (cells[0] == "theirs") {
      is_stored = cells[1] == "ebb";
      if (!is_stored) CHECK(cells[1] == "ebb, a program");
      CHECK(cells[2] == "difference");
      continue;
    }
    rows.push_back({cells[0], cells[1], is_stored, number});
  }
  return rows;
}

// Names in `a` that `b` lacks, a line each.
std::string missing(const std::set<std::string>& a, const std::set<std::string>& b) {
  std::string names;
  for (const std::string& name : a)
    if (!b.contains(name)) names += "\n  " + name;
  return names;
}

bool is_of_tensorflow(const std::string& row) {
  for (const char* prefix : {"tf.", "tf1.", "keras."})
    if (row.find(prefix) != std::string::npos) return true;
  return row == "x[:, ::-1, 1::2]";
}

}  // namespace

TEST_CASE("Every row of docs/coming-from.md has a test, and every such test a row", "[host]") {
  std::map<bool, std::set<std::string>> on_page, tested;
  for (const PageRow& row : page_rows()) {
    INFO("line " << row.line << ": " << row.name);
    CHECK(on_page[row.is_stored].insert(row.name).second);
  }
  for (const Registered& row : registered()) tested[row.is_stored].insert(row.name);
  CHECK(on_page[true].size() > 300);
  CHECK(on_page[false].size() > 80);
  for (const bool is_stored : {true, false}) {
    CHECK(missing(on_page[is_stored], tested[is_stored]) == "");
    CHECK(missing(tested[is_stored], on_page[is_stored]) == "");
  }
}

TEST_CASE("Every row that says so is compared with values of the library that it names", "[host]") {
  std::set<std::string> tested;
  for (const Registered& row : registered())
    if (row.is_stored) tested.insert(row.name);
  std::set<std::string> all;
  for (const std::string& file : files()) {
    std::set<std::string> stored;
    const safetensors::File opened(Golden(file).path());
    for (const safetensors::File::Entry& entry : opened.entries())
      stored.insert(entry.name.substr(0, entry.name.rfind('/')));
    CHECK(missing(stored, tested) == "");
    for (const std::string& name : stored) {
      INFO(file << ": " << name);
      CHECK(is_of_tensorflow(name) == (file == "parity_tensorflow"));
    }
    all.insert(stored.begin(), stored.end());
  }
  CHECK(missing(tested, all) == "");
}

TEST_CASE("What the page calls and sets is in the tests of its rows", "[host]") {
  std::map<std::string, std::string> source_of;  // by row
  std::map<std::string, std::string> texts;      // by file
  for (const Registered& row : registered()) {
    const std::string name = std::filesystem::path(row.file).filename().string();
    std::string& text = texts[name];
    if (text.empty()) text = text_of(source_folder() + "/tests/parity/" + name);
    source_of[row.name] = name;
  }
  static const std::regex call(R"((\w+)(?:\(|\{|<\w+>\())"), option(R"((\.\w+) =)");
  for (const PageRow& row : page_rows()) {
    const std::string& text = texts[source_of[row.name]];
    const auto check = [&](const std::string& word) {
      INFO("line " << row.line << " says " << word << ", " << source_of[row.name] << " does not");
      CHECK(std::regex_search(
          text, std::regex("(^|[^\\w])" + std::regex_replace(word, std::regex("\\."), "\\.") +
                           "(?!\\w)")));
    };
    for (const std::regex& pattern : {call, option})
      for (std::sregex_iterator at(row.ebb.begin(), row.ebb.end(), pattern), end; at != end; ++at)
        check((*at)[1]);
  }
}

}  // namespace ebb::tests::parity
