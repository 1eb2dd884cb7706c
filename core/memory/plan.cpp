#include "ebb/core/memory/plan.h"

#include <sstream>

#include "ebb/core/base/error.h"
#include "ebb/core/memory/figures.h"
#include "ebb/core/memory/json.h"

namespace ebb::memory {

namespace {

const PlanDetails& details_of(const Plan& plan) {
  if (!plan.details)
    ebb::detail::refuse("Plan",
                        "this plan has no details; ask for them with plan(fetches, shapes, "
                        "device, {.details = true})");
  return *plan.details;
}

std::string name_of(const PlanDetails::Operand& operand) {
  return operand.buffer == PlanDetails::kNowhere ? operand.name
                                                 : "b" + std::to_string(operand.buffer);
}

std::string names_of(const std::vector<PlanDetails::Operand>& operands) {
  std::string text;
  for (const PlanDetails::Operand& operand : operands)
    text += (text.empty() ? "" : ", ") + name_of(operand);
  return text;
}

// "multiply", or "fused multiply, add, tanh".
std::string name_of(const PlanDetails::Step& step) {
  std::string text = step.tag.operator_name;
  for (std::size_t i = 0; i < step.chain.size(); ++i)
    text += std::string(i == 0 ? " " : ", ") + step.chain[i];
  return text;
}

std::vector<std::size_t> alive_bytes(const PlanDetails& details) {
  std::vector<std::size_t> alive(details.steps.size(), 0);  // changes, by wrapping arithmetic
  for (const PlanDetails::Buffer& buffer : details.buffers) {
    if (buffer.first < alive.size()) alive[buffer.first] += buffer.bytes;
    if (buffer.last + 1 < alive.size()) alive[buffer.last + 1] -= buffer.bytes;
  }
  for (std::size_t s = 1; s < alive.size(); ++s) alive[s] += alive[s - 1];
  return alive;
}

}  // namespace

std::string Plan::describe(CallSite site) const {
  const ebb::detail::CallSiteScope scope(site);
  const PlanDetails& of = details_of(*this);
  const std::vector<std::size_t> alive = alive_bytes(of);
  std::ostringstream text;
  text << *this << "\n\nstep  alive  what it does (b: buffers below, workspace in brackets)\n";
  for (std::size_t s = 0; s < of.steps.size(); ++s) {
    const PlanDetails::Step& step = of.steps[s];
    text << s << "  " << figure(alive[s]) << "  " << (step.is_repeated ? "again: " : "")
         << names_of(step.writes) << (step.writes.empty() ? "" : " = ") << name_of(step) << "("
         << names_of(step.reads) << ")";
    if (step.workspace != PlanDetails::kNowhere) text << " [b" << step.workspace << "]";
    text << ebb::detail::at(step.tag) << "\n";
  }
  text << "\nbuffer  offset  bytes  steps  category\n";
  for (std::size_t b = 0; b < of.buffers.size(); ++b) {
    const PlanDetails::Buffer& buffer = of.buffers[b];
    text << "b" << b << "  " << buffer.offset << "  " << buffer.bytes << "  " << buffer.first
         << ".." << buffer.last << "  " << name(buffer.category) << "\n";
  }
  return text.str();
}

void Plan::write_graphviz(const std::string& path, CallSite site) const {
  const ebb::detail::CallSiteScope scope(site);
  const PlanDetails& of = details_of(*this);
  const std::vector<std::size_t> alive = alive_bytes(of);
  const auto quoted = detail::json_string;  // alike for Graphviz
  std::ostringstream text;
  text << "digraph plan {\n  node [shape=box];\n";
  std::vector<std::size_t> writer(of.buffers.size(), PlanDetails::kNowhere);  // step, by buffer
  for (std::size_t s = 0; s < of.steps.size(); ++s) {
    const PlanDetails::Step& step = of.steps[s];
    text << "  s" << s << " [label="
         << quoted(std::to_string(s) + " " + name_of(step) + ebb::detail::at(step.tag) + "\n" +
                   figure(alive[s]) + " alive")
         << (step.is_repeated ? ", style=filled, fillcolor=lightyellow" : "") << "];\n";
    if (s > 0) text << "  s" << s - 1 << " -> s" << s << " [style=invis];\n";
    for (const PlanDetails::Operand& read : step.reads) {
      if (read.buffer == PlanDetails::kNowhere) {
        const std::string tensor = quoted("tensor " + read.name);  // apart from steps
        text << "  " << tensor << " [shape=ellipse];\n  " << tensor << " -> s" << s << ";\n";
      } else if (writer[read.buffer] != PlanDetails::kNowhere) {
        text << "  s" << writer[read.buffer] << " -> s" << s
             << " [label=" << quoted(name_of(read) + ": " + figure(of.buffers[read.buffer].bytes))
             << "];\n";
      }
    }
    for (const PlanDetails::Operand& write : step.writes)
      if (write.buffer != PlanDetails::kNowhere)
        writer[write.buffer] = s;
      else
        text << "  s" << s << " -> " << quoted("tensor " + write.name) << ";\n";
  }
  text << "}\n";
  detail::PieceFile file(path);
  file.text() = text.str();
  file.commit();
}

}  // namespace ebb::memory
