#include "ebb/tests/properties/stateful_program.h"

#include <algorithm>
#include <set>

namespace ebb::tests {

namespace {

std::string name_of(int v) { return "v" + std::to_string(v); }

// Prints a line. The meaning of its variant is in compute(), view_of() and loss_of().
void print(const Line& line, const std::string& indent, std::string& text) {
  static const char* const kinds[] = {"unary",    "number",     "binary",    "product", "reduce",
                                      "like",     "expression", "view",      "update",  "gradient",
                                      "minimize", "apply",      "recomputed"};
  const auto list = [](const std::vector<int>& values) {
    std::string names;
    for (const int v : values) names += (names.empty() ? "" : ", ") + (v < 0 ? "none" : name_of(v));
    return names;
  };
  text += indent + list(line.out) + " = " + kinds[line.kind] + " " + std::to_string(line.variant) +
          " of " + list(line.in) + ", constant " + std::to_string(line.constant) + ", " +
          std::to_string(line.begin) + " to " + std::to_string(line.end) + ", shape " +
          line.shape.to_string() + (line.flag ? ", flag\n" : "\n");
  for (const Line& inner : line.body) print(inner, indent + "  ", text);
}

}  // namespace

std::vector<bool> StatefulProgram::needed_lines(std::size_t run) const {
  std::vector<bool> needed(lines.size(), false);
  std::vector<int> maker(values.size(), -1);
  std::vector<int> last_update(memories.size(), -1);  // by memory, unless it is state
  std::vector<std::vector<int>> reads(lines.size());  // lines
  const auto reads_of = [&](const std::vector<int>& in, std::vector<int>& of) {
    for (const int v : in) {
      if (v < 0) continue;
      of.push_back(maker[at(v)]);
      of.push_back(last_update[at(values[at(v)].memory)]);
    }
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    reads_of(line.in, reads[i]);
    for (const int v : line.out) maker[at(v)] = static_cast<int>(i);
    if (line.kind != Line::update) continue;
    const auto memory = at(values[at(line.in[0])].memory);
    if (!memories[memory].is_state) last_update[memory] = static_cast<int>(i);
  }
  std::vector<int> open;
  reads_of(runs[run], open);
  while (!open.empty()) {
    const int line = open.back();
    open.pop_back();
    if (line < 0 || needed[at(line)]) continue;
    needed[at(line)] = true;
    const auto& below = reads[at(line)];
    open.insert(open.end(), below.begin(), below.end());
  }
  return needed;
}

std::vector<int> StatefulProgram::fetches_of(std::size_t run) const {
  std::vector<int> fetches = runs[run];
  const std::vector<bool> needed = needed_lines(run);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!needed[i]) continue;
    const Line& line = lines[i];
    const bool steps = line.kind == Line::minimize || line.kind == Line::apply;
    const bool updates_state =
        line.kind == Line::update && memories[at(values[at(line.in[0])].memory)].is_state;
    if (steps || updates_state) fetches.push_back(line.out[0]);
  }
  return fetches;
}

std::string StatefulProgram::to_string() const {
  std::string text = "seed " + std::to_string(seed) + "\n";
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    static const char* const kinds[] = {"parameter", "state", "captured", "captured view",
                                        "placeholder"};
    const StatefulInput& input = inputs[i];
    text += name_of(static_cast<int>(i)) + " = " + kinds[input.kind] + " " + input.name + " " +
            values[i].shape.to_string();
    if (input.kind == StatefulInput::captured_view)
      text += " = rows " + std::to_string(input.begin) + " to " + std::to_string(input.end) +
              " of " + name_of(input.base);
    text += input.leaf ? ", with_grad\n" : "\n";
  }
  for (const Line& line : lines) print(line, "", text);
  for (std::size_t r = 0; r < runs.size(); ++r) {
    text += "run {";
    for (const int v : fetches_of(r)) text += name_of(v) + " ";
    text.back() = '}';
    text += "\n";
  }
  return text;
}

StatefulProgram without_line(const StatefulProgram& program, std::size_t line) {
  StatefulProgram shorter = program;
  std::set<int> gone;
  shorter.lines.clear();
  for (std::size_t i = 0; i < program.lines.size(); ++i) {
    const Line& candidate = program.lines[i];
    const bool reads_gone = std::any_of(candidate.in.begin(), candidate.in.end(),
                                        [&](int v) { return gone.contains(v); });
    if (i == line || reads_gone)
      gone.insert(candidate.out.begin(), candidate.out.end());
    else
      shorter.lines.push_back(candidate);
  }
  shorter.runs.clear();
  for (const std::vector<int>& run : program.runs) {
    std::vector<int> fetches;
    for (const int v : run)
      if (!gone.contains(v)) fetches.push_back(v);
    if (!fetches.empty()) shorter.runs.push_back(std::move(fetches));
  }
  return shorter;
}

}  // namespace ebb::tests
