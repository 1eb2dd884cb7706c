#include <optional>
#include <utility>
#include <vector>

#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/kernels/reduce.h"
#include "ebb/core/kernels/workers.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/graph/passes/passes.h"

namespace ebb::detail {

namespace {

bool compute(Kernel run, const Attributes& how, std::span<const Buffer> inputs, const Buffer& out) {
  return run({.inputs = inputs, .outputs = {&out, 1}, .attributes = &how}).ok();
}

// Finds values that are one number throughout, and fills them with it. A number takes no memory
// between runs. Other constants would, so they are computed in each.
class Folder {
 public:
  explicit Folder(Draft& draft)
      : draft_(draft), written_(written_outputs(draft)), numbers_(draft.specs.size()) {}

  void run() {
    for (DraftNode& item : draft_.nodes)
      if (item.runs && item.node->outputs.size() == 1 && !written_[item.first_output]) find(item);
    leave_out_unread();
  }

 private:
  void find(DraftNode& item) {
    const Node& node = *item.node;
    std::optional<double>& number = numbers_[item.first_output];
    if (item.is_input || node.op->view) {
      number = numbers_[draft_.output_of(node.inputs[0])];
    } else if (node.op->cpu.run == full_op.cpu.run) {
      number = node.attributes.get<FillAttributes>().value;
    } else if ((number = computed(item))) {
      const Spec& spec = draft_.specs[item.first_output];
      auto made = make_ref<Node>(
          full_op, MakingAttributes<FillAttributes>({*number}, spec.shape, spec.dtype), node.site,
          draft_.graph->nodes().size() + draft_.made.size());
      made->outputs = node.outputs;
      made->region = node.region;
      made->category = node.category;
      item.node = made.get();
      draft_.made.push_back(std::move(made));
    }
  }

  std::optional<double> computed(const DraftNode& item) const {
    const Node& node = *item.node;
    const Spec& spec = draft_.specs[item.first_output];
    Kernel run = node.op->cpu.run;
    Attributes how = node.attributes;
    if (node.op == &broadcast_like_op) {
      const double divisor = how.get<Reduction>().divisor(
          spec.shape.elements(), draft_.input_specs(node)[0].shape.elements());
      run = divide_op.number_right.cpu.run;
      how = NumberOperand{divisor, NumberOperand::right};
    } else if (!node.op->pointwise) {
      return {};
    }
    std::uint64_t elements[5] = {};  // of any dtype: operands, the result, the number in its dtype
    InlineVector<Buffer, 3> operands;
    const auto element = [&](std::size_t place, DType dtype) {
      return Buffer{elements + place, {dtype, {1}}};
    };
    const auto fill = [](const Buffer& with, double number) {
      compute(full_op.cpu.run, FillAttributes{number}, {}, with);
    };
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (needs_only_shape(*node.op, i, {})) continue;
      const Index input = draft_.output_of(node.inputs[i]);
      if (!numbers_[input] || operands.size() == 3) return {};
      operands.push_back(element(operands.size(), draft_.specs[input].dtype));
      fill(operands[operands.size() - 1], *numbers_[input]);
    }
    double number = 0;
    const Buffer result = element(3, spec.dtype);
    if (!compute(run, how, {operands.data(), operands.size()}, result)) return {};
    compute(cast_op.cpu.run, {}, {&result, 1}, {&number, {DType::f64, {1}}});
    fill(element(4, spec.dtype), number);
    return elements[4] == elements[3] ? std::optional(number) : std::nullopt;
  }

  void leave_out_unread() {
    std::vector<bool> is_read(draft_.specs.size());
    for (const DraftFetch& fetch : draft_.fetches) is_read[draft_.output_of(fetch.source)] = true;
    for (auto item = draft_.nodes.rbegin(); item != draft_.nodes.rend(); ++item) {
      if (numbers_[item->first_output] && !is_read[item->first_output]) item->runs = false;
      if (!item->runs) continue;
      for (const Node::Source& source : item->node->inputs)
        is_read[draft_.output_of(source)] = true;
    }
  }

  Draft& draft_;
  const std::vector<bool> written_;
  std::vector<std::optional<double>> numbers_;  // by output
};

}  // namespace

void fold(Draft& draft) {
  // A GPU's functions may differ from the CPU's in their last bits, and keep denormal numbers.
  if (draft.runtime->profile().kernels != memory::Kernels::cpu) return;
  flush_denormals_on_this_thread();
  Folder(draft).run();
}

}  // namespace ebb::detail
