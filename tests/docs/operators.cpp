// docs/operators.md is made from the public headers. EBB_WRITE_DOCS=1 writes it anew.
#include <cctype>
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "ebb/graph/onnx/translation.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/source_folder.h"

namespace ebb::tests {
namespace {

struct Family {
  const char* title;
  std::vector<const char*> headers;  // below core/
};

const std::vector<Family> kFamilies = {
    {"Arithmetic", {"kernels/functors/arithmetic.inc", "kernels/functors/rounding.inc"}},
    {"Functions",
     {"kernels/functors/elementary.inc", "kernels/functors/powers.inc",
      "kernels/functors/trigonometry.inc"}},
    {"Extremes of two", {"kernels/functors/extremes.inc", "ops/extremes.h"}},
    {"Activations", {"kernels/functors/activations.inc", "ops/activations.h", "ops/softmax.h"}},
    {"Comparison, logic and choice", {"ops/comparison.h", "ops/where.h"}},
    {"Reductions", {"ops/reduce.h", "ops/statistics.h", "ops/scan.h"}},
    {"Order", {"ops/order.h"}},
    {"Shape", {"ops/shape.h", "ops/layout.h"}},
    {"Indices", {"ops/index.h"}},
    {"Creation and copies", {"ops/create.h", "ops/fill.h", "ops/copy.h"}},
    {"Random numbers", {"ops/random.h"}},
    {"Products and layers",
     {"ops/linear.h", "ops/conv.h", "ops/pool.h", "ops/norm.h", "ops/attention.h"}},
    {"Sequences", {"ops/lstm.h", "ops/gru.h", "ops/sequence.h"}},
    {"Losses", {"ops/cross_entropy.h", "ops/loss.h"}},
    {"Updates in place", {"ops/update.h"}},
    {"Several ranks", {"ops/collective.h"}},
    {"Memory figures", {"ops/memory_figures.h"}},
};

// The first sentence of a comment, or its part before a semicolon.
std::string summary(const std::string& comment) {
  for (std::size_t i = 1; i < comment.size(); ++i) {
    const bool is_end = (comment[i] == '.' || comment[i] == ';') && comment[i - 1] != '.' &&
                        (i + 1 == comment.size() || comment[i + 1] == ' ');
    const std::string before = comment.substr(0, i);
    if (is_end && !before.ends_with(" et al")) return before;
  }
  return comment;
}

// "{.axis, .step}" for each struct of a header whose name ends in Options.
std::map<std::string, std::string> options_of(const std::string& text) {
  static const std::regex structure(R"(struct (\w*Options) \{([^]*?)\n\};)");
  static const std::regex member(R"(\n  [\w:<>]+ (\w+)( =[^;]*)?;)");
  std::map<std::string, std::string> options;
  for (std::sregex_iterator at(text.begin(), text.end(), structure), end; at != end; ++at) {
    const std::string body = std::regex_replace((*at)[2].str(), std::regex("//[^\n]*"), "");
    std::string list;
    for (std::sregex_iterator m(body.begin(), body.end(), member); m != end; ++m)
      list += (list.empty() ? "." : ", .") + (*m)[1].str();
    options[(*at)[1]] = "{" + list + "}";
  }
  return options;
}

// Parameters as their user writes them: names and defaults, options by their members.
std::string arguments(const std::string& parameters,
                      const std::map<std::string, std::string>& options) {
  std::string list, one;
  int depth = 0;
  const auto add = [&] {
    static const std::regex parameter(R"(^\s*([^]*?)(\w+)\s*(=[^]*)?$)");
    std::smatch found;
    if (!std::regex_match(one, found, parameter)) return;
    const std::string type = found[1], standard = found[3];
    if (type.find("CallSite") != std::string::npos) return;
    std::string name = found[2];
    for (const auto& [structure, members] : options)
      if (std::regex_search(type, std::regex("\\b" + structure + "\\b"))) name = members;
    list += (list.empty() ? "" : ", ") + name;
    if (name[0] != '{' && !standard.empty() && standard != "= {}") list += " " + standard;
  };
  for (const char c : parameters) {
    depth += (c == '<' || c == '(' || c == '{') - (c == '>' || c == ')' || c == '}');
    if (c != ',' || depth > 0) {
      one += c;
      continue;
    }
    add();
    one.clear();
  }
  add();
  return list;
}

// Adds a table row for each function that a header or list declares, in its order. Overloads share
// the row of the first.
void add_rows(const std::string& text, const std::map<std::string, std::string>& options,
              std::set<std::string>& seen, std::ostream& page) {
  static const std::regex entry(R"(EBB_(UNARY|BINARY)\((\w+), \w+\))");
  static const std::regex function(
      R"(^(?:inline )?(?:Tensor|Tensors|TopK|\w+Result|\w+CellState) (operator\S+?|\w+)\(([^]*)\)\s*(;|\{[^]*))");
  std::string comment, statement;
  bool in_comment = false, in_detail = false;
  const auto row = [&](const std::string& call, const std::string& name) {
    INFO(name << " needs a comment of its own or above its group");
    CHECK(!comment.empty());
    if (!seen.insert(name).second) return;
    page << "| `" << call << "` | "
         << std::regex_replace(summary(comment), std::regex(R"(\|)"), "\\|") << " |\n";
  };
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("namespace detail {")) in_detail = true;
    if (line.starts_with("}  // namespace detail")) in_detail = false;
    if (in_detail) continue;
    if (line.starts_with("//")) {
      if (!in_comment) comment.clear();
      comment += (comment.empty() ? "" : " ") + line.substr(std::min<std::size_t>(3, line.size()));
      in_comment = true;
      continue;
    }
    in_comment = false;
    if (std::smatch found; std::regex_search(line, found, entry)) {
      row(found[2].str() + (found[1] == "UNARY" ? "(x)" : "(a, b)"), found[2]);
      continue;
    }
    if (line.empty()) {
      comment.clear();
      statement.clear();
      continue;
    }
    line.erase(std::min(line.find("  //"), line.size()));
    if (line.empty()) continue;
    statement += (statement.empty() ? "" : "\n") + line;
    if (line.find(';') == std::string::npos && line.back() != '{' && line.back() != '}') continue;
    std::smatch found;
    if (std::regex_match(statement, found, function) && !found[1].str().starts_with("operator") &&
        statement.find(" auto") == std::string::npos)
      row(found[1].str() + "(" + arguments(found[2], options) + ")", found[1]);
    statement.clear();
  }
}

std::string page() {
  std::ostringstream page;
  page << "# Operators\n\nEvery public operator in one line and one form. The headers in "
          "`core/ops` have its other forms (`sum(x, 1)`, `arange(end)`), shapes, dtypes and "
          "errors. A test makes this page.\n";
  std::map<std::string, std::string> options = {{"CumprodOptions", "{.exclusive, .reverse}"}};
  for (const Family& family : kFamilies)
    for (const char* header : family.headers)
      options.merge(options_of(contents_of(source_folder() + "/core/" + header)));
  std::set<std::string> seen;
  for (const Family& family : kFamilies) {
    page << "\n## " << family.title << "\n\n| function | gives |\n|---|---|\n";
    for (const char* header : family.headers)
      add_rows(contents_of(source_folder() + "/core/" + header), options, seen, page);
  }
  page << "\n## ONNX\n\n`session.write_onnx` translates these operators and what is made of them "
          "(`embedding`, `transpose`, the models):\n\n";
  std::set<std::string_view> translated;
  for (const auto& rule : detail::onnx_rules()) translated.insert(rule.op->name);
  std::string names;
  for (const std::string_view name : translated)
    names += (names.empty() ? "" : ", ") + std::string(name);
  page << names << ".\n";
  return page.str();
}

}  // namespace

TEST_CASE("A summary is a comment's first sentence, which goes on behind authors") {
  CHECK(summary("The total. Of all.") == "The total");
  CHECK(summary("Of Ba et al. and more; at last.") == "Of Ba et al. and more");
  CHECK(summary("x [.., n] as it is") == "x [.., n] as it is");
}

TEST_CASE("docs/operators.md says what the headers say") {
  const std::string file = source_folder() + "/docs/operators.md", made = page();
  if (std::getenv("EBB_WRITE_DOCS")) std::ofstream(file, std::ios::binary) << made;
  INFO("EBB_WRITE_DOCS=1 tests_docs writes it anew");
  CHECK((contents_of(file) == made));
}

TEST_CASE("Every header of core/ops that users include is in docs/operators.md") {
  const std::string umbrella = contents_of(source_folder() + "/ebb.h");
  static const std::regex include(R"re("ebb/core/(ops/\w+\.h)")re");
  std::set<std::string> listed = {"ops/pointwise.h"};  // includes families of the lists
  for (const Family& family : kFamilies)
    listed.insert(family.headers.begin(), family.headers.end());
  std::string missing;
  for (std::sregex_iterator at(umbrella.begin(), umbrella.end(), include), end; at != end; ++at)
    missing += listed.contains((*at)[1]) ? "" : " " + (*at)[1].str();
  CHECK(missing == "");
}

}  // namespace ebb::tests
