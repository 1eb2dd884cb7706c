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

// Names that end in _op without being operators: nodes that nothing applies (leaves, variables),
// moves between devices, a plan's moves to the host, and functions that make definitions.
const Names kOthers = {
    "arg_extreme_op", "captured_op",  "extreme_op",     "fused_op",    "leaf_op",      "move_in_op",
    "move_out_op",    "moved_op",     "placeholder_op", "position_op", "recompute_op", "sort_op",
    "to_op",          "statistic_op", "update_op",      "variable_op", "view_op"};

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

TEST_CASE("Every operator that a source of the library names is in a list of all operators",
          "[host]") {
  const auto [all, operators] = listed();
  CHECK(operators == every_operator().size());
  const std::regex operator_name(R"(\b([a-z]\w*_op)\b)"), definition(R"(\bOpDef\s+(\w+)\s*[{=])");
  Names named;
  for (const char* folder : {"core", "eager", "graph", "kernels", "models", "optim"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(source_folder()) / folder)) {
      const std::string kind = entry.path().extension().string();
      if (kind != ".h" && kind != ".cpp" && kind != ".inc" && kind != ".cu" && kind != ".cuh")
        continue;
      INFO(entry.path());
      const std::string code = code_of(entry.path());
      for (std::sregex_iterator at(code.begin(), code.end(), operator_name), end; at != end; ++at) {
        const std::string name = (*at)[1];
        INFO(name << " is in no list: core/ops/all_operators.cpp, core/kernels/functors/*.inc");
        CHECK(all.count(name) + kOthers.count(name) == 1);
        named.insert(name);
      }
      // An operator of another name would not be found: `.._function` is the name and shape rule of
      // a function composed of operators, `op` a variable.
      for (std::sregex_iterator at(code.begin(), code.end(), definition), end; at != end; ++at) {
        const std::string name = (*at)[1];
        INFO(name << " should end in _op");
        CHECK((name.ends_with("_op") || name.ends_with("_function") || name.starts_with("op")));
      }
    }
  CHECK(named.size() == all.size() + kOthers.size());
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
