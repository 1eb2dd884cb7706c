#include "ebb/tests/properties/stateful_program.h"

#include <algorithm>
#include <set>

namespace ebb::tests {

namespace {

std::string name_of(int v) { return "v" + std::to_string(v); }

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

std::string number_text(double number) {
  std::string text = std::to_string(number);
  text.erase(text.find('.') + 3);
  return text;
}

void print(const Line& line, const std::string& indent, std::string& text) {
  const auto in = [&](std::size_t i) { return name_of(line.in[i]); };
  const std::string c = number_text(line.constant);
  const auto choose = [&](std::vector<std::string> texts) {
    return texts[static_cast<std::size_t>(line.variant) % texts.size()];
  };
  std::string right;
  switch (line.kind) {
    case Line::unary:
      right = choose({"tanh(A)", "sigmoid(A)", "relu(A)", "square(A)", "exp(tanh(A))",
                      "log(square(A) + 1.5)", "-A", "sqrt(square(A) + 1)", "tanh(A)"});
      break;
    case Line::number:
      right = choose({"A + C", "C - A", "A * C", "A / 3", "C / (square(A) + 1)"});
      break;
    case Line::binary:
      right = choose({"A + B", "A - B", "A * B", "A / (square(B) + 1)"});
      break;
    case Line::product:
      right = choose({"matmul(A, B)", "dense(A, B, V)", "matmul(A, B, {.transpose_b = true})",
                      "matmul(A, B, {.transpose_a = true})"});
      break;
    case Line::reduce:
      right = choose({"sum(A, {.axes = {X}, .keep = true})", "mean(A, {.axes = {X}, .keep = true})",
                      "sum(A, {.axes = {X}})", "mean(A, {.axes = {X}})", "select(A, X, Y)"});
      break;
    case Line::like:
      right = choose({"fill_like(A, C)", "sum_like(A, B)", "copy(A)"});
      break;
    case Line::expression:
      right = choose({"slice(A * 2, 0, 1) + B", "tanh(A * 0.5 + B)", "(A + B) * (A - B)",
                      "tanh(-(A + 1) * 0.5) * B", "reshape(reshape(A * 2, {-1}) + 1, shape) - B"});
      break;
    case Line::view:
      right = choose({"slice(A, X, Y)", "reshape(A, S)", "A.detach()", "flatten(A)"});
      break;
    case Line::update:
      right = choose({"assign(A, ", "add_assign(A, "}) +
              (line.in.size() < 2 ? c : in(1) + (line.flag ? ".detach()" : "")) + ")";
      break;
    case Line::gradient:
    case Line::minimize:
    case Line::apply: {
      std::string loss = choose({"sum(square(A))", "mean(tanh(A))", "sum(A)", "mean(square(A))"});
      if (line.in[1] >= 0) loss += " + sum(square(" + in(1) + "))";
      if (line.kind == Line::gradient) {
        std::vector<std::string> targets;
        for (std::size_t i = 2; i < line.in.size(); ++i) targets.push_back(in(i));
        right = "gradients(" + loss + ", {" + join(targets) + "}, " +
                (line.flag ? "{.create_graph = true})" : "{.retain_graph = true}) detached");
      } else {
        static const char* const scopes[] = {"p.scope(a)", "p.scope(b)", "p"};
        static const char* const optimizers[] = {"sgd",   "momentum", "adam",
                                                 "adamw", "sgd:slow", "adam:slow"};
        right = std::string(optimizers[line.end]) +
                (line.kind == Line::minimize ? ".minimize(" : ".apply(gradients of ") + loss +
                ", " + scopes[line.begin] + ")";
      }
      break;
    }
    case Line::recomputed:
      right = "recompute([](" + name_of(line.out[1]) + ") {";
      break;
    case Line::kinds:
      break;
  }
  std::string filled;
  for (const char letter : right) switch (letter) {
      case 'A':
        filled += in(0);
        break;
      case 'B':
        filled += in(1);
        break;
      case 'C':
        filled += c;
        break;
      case 'X':
        filled += std::to_string(line.begin);
        break;
      case 'Y':
        filled += std::to_string(line.end);
        break;
      case 'V':
        filled += std::to_string(line.variant / 4 % 4);
        break;
      case 'S':
        filled += line.shape.to_string();
        break;
      default:
        filled += letter;
    }
  std::vector<std::string> out;
  const std::size_t shown = line.kind == Line::recomputed ? 1 : line.out.size();
  for (std::size_t i = 0; i < shown; ++i) out.push_back(name_of(line.out[i]));
  text += indent + (out.size() > 1 ? "[" + join(out) + "]" : join(out)) + " = " + filled + "\n";
  if (line.kind == Line::recomputed) {
    for (const Line& inner : line.body) print(inner, indent + "  ", text);
    text += indent + "}, " + in(0) + ")\n";
  }
}

}  // namespace

std::vector<bool> StatefulProgram::needed_lines(std::size_t run) const {
  std::vector<bool> needed(lines.size(), false);
  std::vector<int> maker(values.size(), -1);
  std::vector<int> last_update(memories.size(), -1);  // of what is no state
  std::vector<std::vector<int>> reads(lines.size());  // lines
  const auto reads_of = [&](const std::vector<int>& in, std::vector<int>& of) {
    for (const int v : in) {
      if (v < 0) continue;
      of.push_back(maker[static_cast<std::size_t>(v)]);
      of.push_back(
          last_update[static_cast<std::size_t>(values[static_cast<std::size_t>(v)].memory)]);
    }
  };
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Line& line = lines[i];
    reads_of(line.in, reads[i]);
    for (const int v : line.out) maker[static_cast<std::size_t>(v)] = static_cast<int>(i);
    if (line.kind != Line::update) continue;
    const auto memory =
        static_cast<std::size_t>(values[static_cast<std::size_t>(line.in[0])].memory);
    if (!memories[memory].is_state) last_update[memory] = static_cast<int>(i);
  }
  std::vector<int> open;
  reads_of(runs[run], open);
  while (!open.empty()) {
    const int line = open.back();
    open.pop_back();
    if (line < 0 || needed[static_cast<std::size_t>(line)]) continue;
    needed[static_cast<std::size_t>(line)] = true;
    const auto& below = reads[static_cast<std::size_t>(line)];
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
        line.kind == Line::update &&
        memories[static_cast<std::size_t>(values[static_cast<std::size_t>(line.in[0])].memory)]
            .is_state;
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
