#pragma once
#include <atomic>
#include <deque>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ebb/core/recorder.h"
#include "ebb/core/tensor_impl.h"
#include "ebb/core/variable.h"

namespace ebb {

// Graph inputs, as nodes without kernels.
extern const OpDef placeholder_op;
extern const OpDef variable_op;
extern const OpDef captured_op;

struct VariableAttributes {
  std::int64_t index = 0;  // into GraphState::variables()
};

// What the handles of a graph share: its nodes in the order of the program, its variables and what
// it captured. Nodes refer to earlier nodes only.
class GraphState final : public Recorder {
 public:
  ~GraphState() override;

  Tensors record(const OpDef& op, Inputs inputs, const Attributes& attributes,
                 CallSite site) override;
  Tensor declare(const VariableDeclaration& declaration) override;
  Tensor draw(CallSite site) override;
  void begin_recompute() override { region_ = ++regions_; }
  void end_recompute() noexcept override { region_ = 0; }
  Tensor placeholder(std::string_view name, const Spec& spec, CallSite site);

  const std::vector<detail::Ref<Node>>& nodes() const noexcept { return nodes_; }
  // The position of a node of this graph.
  std::size_t position(const Node* node) const { return positions_.at(node); }
  bool owns(const Tensor& tensor) const noexcept {
    return tensor.defined() && tensor.impl()->recorder.get() == this;
  }

  const std::deque<VariableDeclaration>& variables() const noexcept { return variables_; }
  // The index of the variable of that name, or -1.
  std::int64_t find_variable(std::string_view name) const noexcept;
  // The variable that draws depend on, i64[2] {key, run count}, or -1 while nothing draws. It
  // belongs to each session, is never initialised anew and is saved like any other.
  std::int64_t random_state() const noexcept { return random_state_; }

  // Sessions mark their runs, during which nodes cannot be added.
  void begin_run() noexcept { runs_.fetch_add(1, std::memory_order_relaxed); }
  void end_run() noexcept { runs_.fetch_sub(1, std::memory_order_relaxed); }

 private:
  Tensor add_input(const OpDef& op, const Spec& spec, std::string_view name,
                   const Attributes& attributes, CallSite site);
  detail::Ref<Node> capture(const Tensor& tensor, const OpDef& user, CallSite site);
  Node& add(detail::Ref<Node> node);

  std::vector<detail::Ref<Node>> nodes_;
  std::unordered_map<const Node*, std::size_t> positions_;
  std::unordered_map<const void*, detail::Ref<Node>>
      captured_;  // by TensorImpl, which the node pins
  std::deque<VariableDeclaration> variables_;
  std::int64_t random_state_ = -1;
  detail::Ref<Node> random_state_node_;
  std::uint32_t regions_ = 0, region_ = 0;
  std::atomic<int> runs_{0};
};

}  // namespace ebb
