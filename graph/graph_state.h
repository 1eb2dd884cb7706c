#pragma once
#include <atomic>
#include <deque>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ebb/core/base/no_copy.h"
#include "ebb/core/parameters/initializer.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/lineage.h"
#include "ebb/core/tensor/recorder.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb {

// Graph inputs, as nodes without kernels.
extern const OpDef placeholder_op;
extern const OpDef variable_op;
extern const OpDef captured_op;

class GraphState;
namespace detail {
// "placeholder 'x' (model.cpp:12)".
std::string described(const Node& placeholder);
// Throws Error in the name of `what` unless feed i, counted from 0, is for a placeholder of this
// graph.
void require_placeholder(const char* what, const GraphState& graph, const Tensor& fed,
                         std::size_t i, std::size_t feeds);
}  // namespace detail

struct VariableAttributes {
  std::int64_t index = 0;  // into GraphState::variables()
};

// State shared by a graph's handles: nodes in program order, variables and captured tensors. Nodes
// refer to earlier nodes only; a node's number is its position.
class GraphState final : public Recorder {
 public:
  ~GraphState() override;

  // Throw Error while a session runs or plans the graph, or another thread extends it.
  Tensors record(const OpDef& op, Inputs inputs, const Attributes& attributes,
                 CallSite site) override;
  Tensor declare(const VariableDeclaration& declaration) override;
  Tensor capture(const Tensor& concrete, const char* what, CallSite site) override;
  Tensor constant(const Tensor& concrete, const char* what, CallSite site) override;
  Tensor placeholder(std::string_view name, const Spec& spec, CallSite site) override;
  Tensor draw(CallSite site) override;

  void begin_recompute() override {
    if (region_depth_++ == 0) region_ = ++regions_;  // nested regions belong to the outermost
  }
  void end_recompute() noexcept override {
    if (--region_depth_ == 0) region_ = 0;
  }

  const std::vector<detail::Ref<Node>>& nodes() const noexcept { return nodes_; }
  bool owns(const Tensor& tensor) const noexcept {
    return tensor.defined() && tensor.impl()->recorder.get() == this;
  }

  const std::deque<VariableDeclaration>& variables() const noexcept { return variables_; }
  // The variable that draws depend on, i64[2] {key, run count}, or -1 while nothing draws. Each
  // session has its own; it is never initialised again, and is saved like any other.
  std::int64_t random_state() const noexcept { return random_state_; }

  // From now on draws are rows of `draws`, i64[-1, 2]: the k-th is that of the thread's generator k
  // steps from now.
  void take_draws_from(const Tensor& draws) {
    draws_ = draws;
    first_draw_ = detail::generator();
  }
  void forget_draws() { draws_ = Tensor(); }

  // While one is alive, a session plans or runs the graph and nodes cannot be added.
  class Reading : NoCopy {
   public:
    explicit Reading(const GraphState& graph) noexcept;
    ~Reading() { graph_.users_.fetch_sub(1, std::memory_order_release); }

   private:
    const GraphState& graph_;
  };

 private:
  class Extending;
  Tensor add_input(const OpDef& op, const Spec& spec, std::string_view name,
                   const Attributes& attributes, CallSite site);
  Node::Source captured_source(const Tensor& tensor, const char* what, CallSite site);
  Node::Source captured_shares(const Tensor& tensor, const char* what, CallSite site);
  static void add_update(const detail::Root& root, Node& node);
  detail::Ref<Node> new_node(const OpDef& op, const Attributes& attributes, CallSite site) const;

  std::vector<detail::Ref<Node>> nodes_;
  std::unordered_map<std::string, Node*> placeholders_;      // by name
  std::unordered_map<const void*, Node*> captured_;          // by TensorImpl, which the node pins
  std::unordered_map<const void*, Node*> captured_storage_;  // the first node of each storage
  std::int64_t views_of_shares_ = 0;
  std::unordered_map<const void*, Node*> captured_shares_;  // parameters, by storage
  std::deque<VariableDeclaration> variables_;
  std::int64_t random_state_ = -1;
  detail::Ref<Node> random_state_node_;
  Tensor draws_;  // not defined() in a graph that a session runs
  detail::Generator first_draw_;
  std::uint32_t regions_ = 0, region_ = 0;
  int region_depth_ = 0;
  mutable std::atomic<int> users_{0};  // number of reading sessions; -1: a thread adds a node
};

}  // namespace ebb
