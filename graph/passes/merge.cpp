#include <map>
#include <vector>

#include "ebb/core/ops/create.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

class Merger {
 public:
  explicit Merger(Draft& draft)
      : draft_(draft), written_(written_outputs(draft)), stands_for_(draft.specs.size()) {
    for (Index output = 0; output < stands_for_.size(); ++output) stands_for_[output] = output;
  }

  bool run() {
    bool found = false;
    for (Index n = 0; n < draft_.nodes.size(); ++n) {
      const DraftNode& item = draft_.nodes[n];
      if (!item.runs || item.node->op->is_source) continue;
      if (item.is_input)
        stands_for_[item.first_output] = stands_for_[draft_.output_of(item.node->inputs[0])];
      else if (may_merge(item))
        found |= merge(n);
    }
    return found;
  }

 private:
  // The program must not see that two results are one: nothing writes to either.
  bool may_merge(const DraftNode& item) const {
    const OpDef& op = *item.node->op;
    if (op.stateful || op.moves || !op.updates.empty()) return false;
    for (std::size_t k = 0; k < item.node->outputs.size(); ++k)
      if (written_[item.first_output + k]) return false;
    return true;
  }

  // What the passes and the kernel know of the node, but for its line.
  std::vector<std::uint64_t> key_of(const Node& node) const {
    const auto words = node.attributes.words();
    std::vector<std::uint64_t> key(words.begin(), words.end());
    key.push_back(reinterpret_cast<std::uintptr_t>(node.op));
    // What reverse mode computes once more it means to: the first result need not be kept.
    key.push_back(static_cast<std::uint64_t>(node.category));
    for (const Node::Source& source : node.inputs)
      key.insert(key.end(), {stands_for_[draft_.output_of(source)], source.version});
    return key;
  }

  bool merge(Index n) {
    DraftNode& item = draft_.nodes[n];
    const auto [earlier, is_new] = firsts_.emplace(key_of(*item.node), n);
    if (is_new) return false;
    DraftNode& first = draft_.nodes[earlier->second];
    for (Index k = 0; k < item.node->outputs.size(); ++k) {
      stands_for_[item.first_output + k] = first.first_output + k;
      if (item.read.has(k)) first.read.insert(k);
    }
    // A view costs nothing; a filled value less than to keep the first.
    if (item.node->op->view || item.node->op->cpu.run == full_op.cpu.run) return false;
    item.same_as = earlier->second;
    return true;
  }

  Draft& draft_;
  const std::vector<bool> written_;
  std::vector<Index> stands_for_;  // by output: the first of its equals
  std::map<std::vector<std::uint64_t>, Index> firsts_;
};

}  // namespace

bool merge(Draft& draft) { return Merger(draft).run(); }

}  // namespace ebb::detail
