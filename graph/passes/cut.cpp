// Cuts a step into micro-batches.
#include <map>
#include <utility>

#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/kernels/random.h"
#include "ebb/core/kernels/slice.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/core/ops/update.h"
#include "ebb/graph/passes/rows.h"

namespace ebb::detail {

namespace {

class Cutter {
 public:
  Cutter(const Draft& draft, const Rows& rows, std::int64_t micro_batches)
      : from_(draft),
        rows_(rows),
        count_(micro_batches),
        to_(draft),
        is_early_(draft.nodes.size()) {
    to_.nodes.clear();
    to_.stands_for.resize(draft.specs.size());
    for (Index i = 0; i < to_.stands_for.size(); ++i) to_.stands_for[i] = i;
    now_.resize(draft.specs.size());
    totals_.resize(draft.specs.size());
    is_read_whole_.resize(draft.specs.size());
  }

  Draft run() {
    find_readers();
    const auto add_once = [&](bool early) {
      for (Index n = 0; n < from_.nodes.size(); ++n)
        if (!rows_.items[n].is_cut && is_early_[n] == early) add(from_.nodes[n]);
    };
    add_once(true);
    for (DraftFetch& fetch : to_.fetches)
      if (is_cut(fetch.source)) make_room(fetch);
    for (part_ = 0; part_ < count_; ++part_) {
      slices_.clear();
      for (Index n = 0; n < from_.nodes.size(); ++n)
        if (rows_.items[n].is_cut) add_part(n);
    }
    for (Index n = 0; n < from_.nodes.size(); ++n)
      if (rows_.items[n].is_cut) {  // others read its shape
        DraftNode shape = from_.nodes[n];
        shape.runs = false;
        add(std::move(shape));
      }
    add_once(false);
    return std::move(to_);
  }

 private:
  bool is_cut(const Node::Source& source) const {
    return rows_.items[from_.index_of(*source.producer)].is_cut;
  }

  // Finds nodes that run before all micro-batches, since these read what they make, and values that
  // are read when all micro-batches have run.
  void find_readers() {
    for (const DraftFetch& fetch : from_.fetches)
      if (is_cut(fetch.source)) is_read_whole_[from_.output_of(fetch.source)] = true;
    for (auto n = static_cast<Index>(from_.nodes.size()); n-- > 0;) {
      const DraftNode& item = from_.nodes[n];
      const Node& node = *item.node;
      const IndexSet unwanted = unwanted_outputs(item);
      for (std::size_t j = 0; j < node.inputs.size(); ++j) {
        if (needs_only_shape(*node.op, j, unwanted) && !node.op->stateful) continue;
        const Node::Source& source = node.inputs[j];
        if (is_cut(source)) {
          if (item.runs && !rows_.items[n].is_cut) is_read_whole_[from_.output_of(source)] = true;
        } else if (rows_.items[n].is_cut || is_early_[n]) {
          is_early_[from_.index_of(*source.producer)] = true;
          if (source.version == 0) continue;
          const Node& update = *updates_of(root_of(source))[source.version - 1];
          if (from_.index_of(update) != kNone) is_early_[from_.index_of(update)] = true;
        }
      }
    }
  }

  void add(DraftNode item) {
    to_.of_position[item.node->number] = static_cast<Index>(to_.nodes.size());
    to_.nodes.push_back(std::move(item));
  }

  // A new node, like one that the user wrote.
  Node& make(const OpDef& op, const Attributes& attributes, const Node& like,
             std::initializer_list<Node::Source> inputs) {
    Ref<Node> node = make_ref<Node>(op, attributes, like.site, to_.of_position.size());
    node->category = like.category;
    for (const Node::Source& input : inputs) node->inputs.push_back(input);
    to_.made.push_back(node);
    to_.of_position.push_back(kNone);
    return *node;
  }
  Node::Source add_made(Node& node, const Spec& output, bool runs = true) {
    DraftNode item{
        .node = &node, .first_output = static_cast<Index>(to_.specs.size()), .runs = runs};
    append(node, output);
    item.read.insert(0);
    add(std::move(item));
    return source_of(node, 0);
  }
  void append(Node& node, const Spec& output) {
    node.outputs.push_back(output);
    to_.stands_for.push_back(static_cast<Index>(to_.specs.size()));
    to_.specs.push_back(output);
  }
  // The memory of a view or an update is its first input's.
  static void share_memory(Node& node) {
    const Root root = root_of(node.inputs[0]);
    node.root = root.node;
    node.root_output = root.output;
  }
  static Node::Source source_of(Node& node, std::uint32_t output) {
    const bool is_view = output == 0 && node.op->view;
    return {Ref<Node>(&node), output, is_view ? node.inputs[0].version : 0};
  }

  std::int64_t begin(std::int64_t part) const { return rows_.count * part / count_; }
  std::int64_t part_of(std::int64_t size, std::int64_t rows) const {
    return size / rows_.count * rows;
  }
  Spec spec_of_part(Index output) const {
    Spec spec = from_.specs[output];
    if (const int axis = rows_.place[output]; axis >= 0)
      spec.shape.set(axis, part_of(spec.shape.dim(axis), begin(part_ + 1) - begin(part_)));
    return spec;
  }

  // The rows of this micro-batch in a value that is there as a whole.
  Node::Source slice(const Node::Source& whole, const Spec& spec, int axis, const Node& reader,
                     bool runs) {
    const std::int64_t size = spec.shape.dim(axis);
    const SliceAttributes rows{part_of(size, begin(part_)), part_of(size, begin(part_ + 1)), axis};
    const bool is_view = axis == 0;
    Node& node = make(is_view ? slice_op : strided_slice_op, rows, reader, {whole});
    if (is_view) share_memory(node);
    Spec part = spec;
    part.shape.set(axis, rows.end - rows.begin);
    return add_made(node, part, runs);
  }

  Node::Source times_share(const Node::Source& x, const Spec& spec, const Node& reader) {
    const double share =
        static_cast<double>(begin(part_ + 1) - begin(part_)) / static_cast<double>(rows_.count);
    return add_made(make(multiply_op.number_right,
                         NumberAndOperation{{share, NumberOperand::right}}, reader, {x}),
                    spec);
  }

  Node::Source input_of_part(Index n, std::size_t j, bool runs) {
    const Rows::Item& item = rows_.items[n];
    const Node& node = *from_.nodes[n].node;
    const Node::Source& source = node.inputs[j];
    const Index output = from_.output_of(source);
    Node::Source input = source;
    if (is_cut(source)) {
      input = now_[output];
    } else if (item.reads[j] >= 0) {
      Node::Source& kept = slices_[{output, item.reads[j], runs}];
      if (!kept.producer) kept = slice(source, from_.specs[output], item.reads[j], node, runs);
      input = kept;
    }
    return runs && item.weighted == j ? times_share(input, from_.specs[output], node) : input;
  }

  void add_part(Index n) {
    const Rows::Item& item = rows_.items[n];
    const DraftNode& whole = from_.nodes[n];
    const Node& like = *whole.node;
    const IndexSet unwanted = unwanted_outputs(whole);
    InlineVector<Node::Source, 3> inputs;
    for (std::size_t j = 0; j < like.inputs.size(); ++j)
      inputs.push_back(input_of_part(n, j, whole.runs && !needs_only_shape(*like.op, j, unwanted)));
    Attributes attributes = like.attributes;
    if (item.draws) {
      auto draw = attributes.get<RandomAttributes>();
      const Shape& shape = from_.specs[whole.first_output].shape;
      draw.first += part_of(shape.elements(), begin(part_));
      attributes = draw;
    }
    Node& node = make(*like.op, attributes, like, {});
    node.inputs = std::move(inputs);
    if (node.op->view) share_memory(node);
    DraftNode part = whole;
    part.node = &node;
    part.first_output = static_cast<Index>(to_.specs.size());
    for (Index k = 0; k < like.outputs.size(); ++k)
      append(node, spec_of_part(whole.first_output + k));
    add(std::move(part));
    for (Index k = 0; k < like.outputs.size(); ++k) {
      const Index output = whole.first_output + k;
      now_[output] = source_of(node, k);
      if (item.weighs_outputs && whole.runs)
        now_[output] = times_share(now_[output], from_.specs[output], like);
      if (is_read_whole_[output]) add_to_whole(output, like);
    }
  }

  // Adds what this micro-batch made to the whole. Sums of 16 bits are held as floats meanwhile.
  void add_to_whole(Index output, const Node& like) {
    const Spec& spec = from_.specs[output];
    Node::Source& total = totals_[output];
    if (rows_.place[output] >= 0) {
      total.version = static_cast<std::uint32_t>(part_);
      const Node::Source rows = slice(total, spec, 0, like, true);
      Node& written = make(assign_op, {}, like, {rows, now_[output]});
      share_memory(written);
      add_made(written, spec_of_part(output));
      return;
    }
    const Spec sum{is_half(spec.dtype) ? DType::f32 : spec.dtype, spec.shape};
    const auto as = [&](const Node::Source& x, const Spec& to) {
      const Attributes told = static_cast<std::int64_t>(to.dtype);
      return sum == spec ? x : add_made(make(cast_op, told, like, {x}), to);
    };
    const Node::Source part = as(now_[output], sum);
    total = part_ == 0
                ? part
                : add_made(make(add_op.tensors, NumberAndOperation{}, like, {total, part}), sum);
    if (part_ + 1 == count_) to_.stands_for[output] = to_.output_of(as(total, spec));
  }

  // Memory for fetched rows, which micro-batches write one after the other.
  void make_room(DraftFetch& fetch) {
    const Index output = from_.output_of(fetch.source);
    if (rows_.place[output] < 0) return;
    Node::Source& total = totals_[output];
    const Spec& spec = from_.specs[output];
    const MakingAttributes<FillAttributes> zeros({0}, spec.shape, spec.dtype);
    if (!total.producer) total = add_made(make(full_op, zeros, *fetch.source.producer, {}), spec);
    fetch.source = total;
    fetch.source.version = static_cast<std::uint32_t>(count_);
  }

  const Draft& from_;
  const Rows& rows_;
  const std::int64_t count_;
  Draft to_;
  std::vector<bool> is_early_;       // by node
  std::vector<bool> is_read_whole_;  // by output
  std::int64_t part_ = 0;
  std::vector<Node::Source> now_;     // by output: in this micro-batch
  std::vector<Node::Source> totals_;  // by output: of the micro-batches so far
  std::map<std::tuple<Index, int, bool>, Node::Source> slices_;  // by output, axis, whether it runs
};

}  // namespace

Draft cut(const Draft& draft, const Rows& rows, std::int64_t micro_batches) {
  return Cutter(draft, rows, micro_batches).run();
}

}  // namespace ebb::detail
