#include "ebb/graph/passes/rows.h"

#include <algorithm>

#include "ebb/core/base/error.h"
#include "ebb/core/ops/norm.h"
#include "ebb/core/ops/random.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

class Analysis {
 public:
  explicit Analysis(const Draft& draft) : draft_(draft), late_(draft.nodes.size(), false) {
    rows_.place.assign(draft.specs.size(), kNoRows);
    rows_.items.resize(draft.nodes.size());
  }

  Rows run(const std::optional<std::vector<std::size_t>>& feeds) {
    find_batch(feeds);
    for (Index n = 0; n < draft_.nodes.size() && rows_.refusal.empty() && !is_stuck_; ++n) place(n);
    for (const DraftFetch& fetch : draft_.fetches)
      if (rows_.items[draft_.index_of(*fetch.source.producer)].is_cut)
        if (const int place = rows_.place[draft_.output_of(fetch.source)];
            place > 0 || place == kReserve)
          note_unknown("a fetch of " + named(*fetch.source.producer) +
                       " has its rows in another axis than the leading one");
    return std::move(rows_);
  }

 private:
  void find_batch(const std::optional<std::vector<std::size_t>>& feeds) {
    const Node* first = nullptr;
    for (Index f = 0; f < draft_.feeds.size(); ++f) {
      const Node& feed = *draft_.feeds[f];
      if (draft_.of_position[feed.number] == kNone) continue;
      if (feeds ? std::ranges::find(*feeds, f) == feeds->end()
                : !has_open_rows(feed.outputs[0].shape))
        continue;
      const std::int64_t count = draft_.feed_specs[f].shape.dim(0);
      if (first && count != rows_.count) {
        rows_.refusal = described(*first) + " has " + std::to_string(rows_.count) + " rows and " +
                        described(feed) + " " + std::to_string(count);
        return;
      }
      first = &feed;
      rows_.count = count;
      rows_.place[draft_.at(feed).first_output] = 0;
    }
    is_stuck_ = rows_.count < 2;
    if (!first)
      rows_.unknown =
          feeds ? "no argument is named as one with a row for each sample (CompileOptions::batch)"
                : "no feed has an open leading axis (-1)";
    else if (is_stuck_)
      rows_.unknown = "the batch has no two rows";
  }

  // Whether the node waits for a sum over all rows by way of this input.
  bool is_late(const Node::Source& source) const {
    if (rows_.place[draft_.output_of(source)] == kNoRows &&
        late_[draft_.index_of(*source.producer)])
      return true;
    if (source.version == 0) return false;
    const Index update = draft_.index_of(*updates_of(root_of(source))[source.version - 1]);
    return update != kNone && late_[update];
  }

  void place(Index n) {
    const DraftNode& item = draft_.nodes[n];
    const Node& node = *item.node;
    const OpDef& op = *node.op;
    const IndexSet unwanted = unwanted_outputs(item);
    InlineVector<int, 8> from;
    bool has_rows = false, has_sums = false, is_late_here = false;
    bool all_sums = true, all_means = true;
    for (std::size_t j = 0; j < node.inputs.size(); ++j) {
      const int place = rows_.place[draft_.output_of(node.inputs[j])];
      from.push_back(place);
      has_rows |= place >= 0 || place == kReserve;
      if (needs_only_shape(op, j, unwanted) && !op.stateful) continue;
      has_sums |= place == kSum || place == kMean;
      all_means &= place == kMean;
      all_sums &= place == kSum || place == kMean;
      is_late_here |= is_late(node.inputs[j]);
    }
    if (op.is_source) return;
    late_[n] = has_sums || is_late_here;
    if (!has_rows && !has_sums) return;
    if (&op == &batch_norm_op)
      return refuse(node,
                    "takes its statistics from the whole batch, and micro-batches have others");
    if (has_rows ? op.stateful : !op.updates.empty() && from[0] != kNoRows)
      return refuse(node, "keeps or changes what depends on the rows of a batch");
    if (!has_rows) {
      if (!all_sums || is_late_here || !is_linear(op)) return;  // once, with the sums over all rows
      rows_.items[n] = {{.reads = from}, true};
      late_[n] = false;
      rows_.place[item.first_output] = all_means ? kMean : kSum;
      return;
    }
    if (has_sums || is_late_here)
      return refuse(node, "reads a value of the whole batch beside rows of it");
    const RowRule rule = row_rule(op);
    if (!rule) {
      is_stuck_ = true;
      return note_unknown("it is not known how " + named(node) + " depends on the rows of a batch");
    }
    const Specs inputs = draft_.input_specs(node);
    const std::span outputs(draft_.specs.data() + item.first_output, node.outputs.size());
    RowQuery query{{}, node, inputs, outputs, from, rows_.count};
    if (!rule(query) || !holds(query)) return refuse(node, "mixes the rows of a batch");
    if (std::ranges::all_of(query.makes, [](int place) { return place == kNoRows; })) return;
    if (query.draws && (&op != &dropout_op || query.makes[0] != 0))
      note_unknown(named(node) + " draws numbers by their position in the batch");
    rows_.items[n] = {query, true};
    std::ranges::copy(query.makes, rows_.place.begin() + item.first_output);
  }

  // Whether inputs that have rows are read where these are, and whole numbers of places belong to
  // each row.
  bool holds(const RowQuery& query) const {
    const auto is_whole = [&](const Spec& spec, int axis) {
      return axis < 0 || (axis < spec.shape.rank() && spec.shape.dim(axis) % rows_.count == 0);
    };
    for (std::size_t i = 0; i < query.from.size(); ++i) {
      const int from = query.from[i];
      if ((from >= 0 || from == kReserve) && query.reads[i] != from) return false;
      if (!is_whole(query.inputs[i], query.reads[i])) return false;
    }
    for (std::size_t k = 0; k < query.makes.size(); ++k)
      if (!is_whole(query.outputs[k], query.makes[k])) return false;
    return true;
  }

  static std::string named(const Node& node) { return node.op->name + at(node.site); }
  void refuse(const Node& node, const char* text) { rows_.refusal = named(node) + " " + text; }

  void note_unknown(std::string text) {
    if (rows_.unknown.empty()) rows_.unknown = std::move(text);
  }

  const Draft& draft_;
  bool is_stuck_ = false;   // nothing is known of the nodes after this
  std::vector<bool> late_;  // by node: runs once, after all micro-batches
  Rows rows_;
};

}  // namespace

Rows find_rows(const Draft& draft, const std::optional<std::vector<std::size_t>>& feeds) {
  return Analysis(draft).run(feeds);
}

}  // namespace ebb::detail
