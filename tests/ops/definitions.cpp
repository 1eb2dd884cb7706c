// Reads the sources: an operator that is defined but not listed would go untested.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>

#include "ebb/tests/catch.h"
#include "ebb/tests/ops/harness.h"
#include "ebb/tests/source_folder.h"

namespace ebb::tests {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

// Text of a file without its comments.
std::string code_of(const fs::path& file) {
  std::ifstream stream(file);
  const std::string text{std::istreambuf_iterator<char>(stream), {}};
  return std::regex_replace(text, std::regex("//[^\n]*"), "");
}

// Names of the operators that a source defines. Three kinds of OpDef are left out: nodes that
// nothing applies (leaves and variables, with `.infer = nullptr`); moves between devices, which
// have no kernel; and `.._function`, the name and shape rule of a function composed of operators.
// Mentions of OpDef in any other form go to `unknown`, so that no operator hides there.
Names definitions(const std::string& code, std::vector<std::string>& unknown) {
  static const std::regex mention(
      R"((extern\s+const|struct)?\s*\b(?:Binary)?OpDef\b\s*(\w+)?\s*(\S))");
  // The helpers that make a definition in a few words (core/ops/pointwise_rules.h). cpu::pair is a
  // kernel.
  static const std::regex maker(
      R"((OpDef\s+\w+\s*=\s*(?:detail::)?|std::|cpu::)?\b(?:unary|binary|pair)<)");
  Names names;
  for (std::sregex_iterator at(code.begin(), code.end(), mention), end; at != end; ++at) {
    const std::string before = (*at)[1], name = (*at)[2], after = (*at)[3];
    const bool initialised = !name.empty() && (after == "{" || after == "=");
    const bool only_named = name.empty() && std::string("&*:").find(after) != std::string::npos;
    if (before == "struct" || only_named || (!before.empty() && !initialised)) continue;
    // A helper that returns definitions; the definitions that it makes are initialised elsewhere.
    const std::string suffix = at->suffix();
    if (!name.empty() && after == "(" && suffix.starts_with("const char* name")) continue;
    if (!initialised) {
      unknown.push_back(at->str());
      continue;
    }
    const std::string text = suffix.substr(0, suffix.find("OpDef"));
    const auto says = [&](const char* what) { return text.find(what) != std::string::npos; };
    const bool is_function = name.ends_with("_function") && !says(".cpu") && !says(".view");
    if (!says(".infer = nullptr") && !says(".moves = true") && !is_function) names.insert(name);
  }
  for (std::sregex_iterator at(code.begin(), code.end(), maker), end; at != end; ++at)
    if (!(*at)[1].matched) unknown.push_back(at->str());
  return names;
}

// Whether a file holds the helpers that make definitions rather than definitions.
bool is_of_makers(const fs::path& file) {
  const std::string name = file.filename().string();
  return name == "pointwise_rules.h" || name == "op_def.h" ||
         name == "pointwise.h";  // kernels named like makers
}

// Names in the lists of all operators and of the pointwise families. `operators` counts what they
// stand for: a binary name counts three, since either operand may be a number.
struct Listed {
  Names names;
  std::size_t operators = 0;
};

Listed listed() {
  Listed list;
  const auto add = [&](const fs::path& file, const std::regex& entry, const std::string& ending) {
    const std::string code = code_of(file);
    for (std::sregex_iterator at(code.begin(), code.end(), entry), end; at != end; ++at) {
      const std::string kind = (*at)[1], name = (*at)[2];
      list.names.insert(name + ending);
      list.operators += kind == "EBB_BINARY" ? 3 : 1;
    }
  };
  const fs::path core = fs::path(source_folder()) / "core";
  for (const fs::path& file :
       {core / "ops/all_operators.cpp", fs::path(source_folder()) / "optim/all_operators.cpp"})
    add(file, std::regex(R"((&)(\w+_op)\b)"), "");
  const fs::path updates = fs::path(source_folder()) / "optim/kernels/rules.inc";
  add(updates, std::regex(R"((EBB_\w+)\((\w+),)"), "_op");
  for (const auto& file : fs::directory_iterator(core / "kernels/functors"))
    if (file.path().extension() == ".inc")
      add(file.path(), std::regex(R"((EBB_\w+)\((\w+),)"), "_op");
  return list;
}

}  // namespace

TEST_CASE("Every operator that a source of the library defines is in a list of all operators",
          "[host]") {
  const auto [all, operators] = listed();
  CHECK(operators == every_operator().size());
  Names defined;
  for (const char* folder : {"core", "eager", "graph", "kernels", "models", "optim"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_folder()) / folder)) {
      const std::string kind = entry.path().extension().string();
      if (kind != ".h" && kind != ".cpp" && kind != ".inc" && kind != ".cu" && kind != ".cuh")
        continue;
      if (is_of_makers(entry.path())) continue;
      INFO(entry.path());
      std::vector<std::string> unknown;
      for (const std::string& name : definitions(code_of(entry.path()), unknown)) {
        INFO(name << " is in no list: core/ops/all_operators.cpp, core/kernels/functors/*.inc");
        CHECK(all.count(name) == 1);
        defined.insert(name);
      }
      CHECK(unknown == std::vector<std::string>());
    }
  CHECK(defined == all);
}

TEST_CASE("A definition is found however it is written, or its form is refused", "[host]") {
  const auto found = [](const std::string& code) {
    std::vector<std::string> unknown;
    Names names = definitions(code, unknown);
    if (!unknown.empty()) names.insert("unknown");
    return names;
  };
  CHECK(found("constinit const OpDef a_op{.name = \"a\"};") == Names{"a_op"});
  CHECK(found("inline constexpr OpDef\n    a_op\n{.name = \"a\"};") == Names{"a_op"});
  CHECK(found("extern const OpDef a_op;\nextern const OpDef a_op{};") == Names{"a_op"});
  CHECK(found("constexpr OpDef a_function{.name = \"a\", .infer = rule};") == Names());
  CHECK(found("constexpr OpDef a_function{.name = \"a\", .cpu = {run}};") == Names{"a_function"});
  CHECK(found("constexpr OpDef made(const char* name, int i) { return {}; }\n"
              "const OpDef a_op = made(\"a\", 1);") == Names{"a_op"});
  CHECK(found("const OpDef a_op = made();\nstatic const OpDef b_op{};") == Names{"a_op", "b_op"});
  CHECK(found("extern const OpDef a_op, b_op;\nstruct OpDef;\nvoid f(const OpDef& op);\n"
              "const OpDef* const all[] = {}; Keeps k = OpDef::none;") == Names());
  CHECK(found("const OpDef a_op = {.name = \"a\", .infer = nullptr};\n"
              "const OpDef b_op{.name = \"b\", .infer = same_shape};") == Names{"b_op"});
  CHECK(
      found(
          "constinit const OpDef a_op = unary<F>(\"a\", {});\n"
          "constinit const BinaryOpDef b_op =\n    binary<F>(\"b\", {}); std::pair<int, int> p;") ==
      Names{"a_op", "b_op"});
  CHECK(found("constinit const auto a_op = unary<F>(\"a\", {});") == Names{"unknown"});
  CHECK(found("const OpDef ops[] = {{}};") == Names{"unknown"});
  CHECK(found("const auto a_op = OpDef{.name = \"a\"};") == Names{"unknown"});
  CHECK(found("#define MAKE(name) const OpDef name##_op{}") == Names{"unknown"});
  CHECK(found("constexpr OpDef made() { return {}; }") == Names{"unknown"});
  CHECK(found("template <class F> const OpDef map_op;") == Names{"unknown"});
}

TEST_CASE("Every operator has a sample", "[host]") {
  const std::vector<Sample> samples = all_samples(DType::f32);
  for (const OpDef* op : every_operator()) {
    INFO(op->name);
    CHECK(std::any_of(samples.begin(), samples.end(),
                      [&](const Sample& sample) { return sample.op == op; }));
  }
}

TEST_CASE("Every sample is of a listed operator, and applies it", "[host]") {
  const auto all = every_operator();
  for (const DType dtype : kFloating)
    for (const Sample& sample : all_samples(dtype)) {
      INFO(sample.name);
      CHECK(std::find(all.begin(), all.end(), sample.op) != all.end());
      CHECK_NOTHROW(RecordedSample(sample, dtype, true).node());
    }
}

TEST_CASE("No operator is listed twice, and no two samples have one name", "[host]") {
  const auto all = every_operator();
  CHECK(std::set<const OpDef*>(all.begin(), all.end()).size() == all.size());
  std::set<std::string> names;
  for (const Sample& sample : all_samples(DType::f32)) {
    INFO(sample.name);
    CHECK(names.insert(sample.name).second);
  }
}

TEST_CASE("Every operator is complete: a shape rule, and a kernel unless it is a view", "[host]") {
  for (const OpDef* op : every_operator()) {
    INFO(op->name);
    CHECK(op->infer != nullptr);
    CHECK((op->cpu.run != nullptr) == (op->view == nullptr));
    CHECK((op->cuda.run != nullptr) == (op->view == nullptr));
    CHECK_FALSE((op->gradient && op->compose));
    // An input needed only for its shape is neither kept, taken over, destroyed nor updated.
    CHECK((op->shape_only & op->keeps.inputs).empty());
    CHECK((op->shape_only & (op->takes_over | op->destroys | op->updates)).empty());
    // An input's memory is used in one way only.
    CHECK((op->destroys & (op->takes_over | op->updates)).empty());
    // An operator that writes in place is never merged, folded or reordered.
    CHECK((op->updates.empty() || op->stateful));
    CHECK((op->updates.empty() || op->updates.has(0)));
  }
}

}  // namespace ebb::tests
