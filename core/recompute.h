#pragma once
#include <functional>
#include <vector>

#include "ebb/core/apply.h"
#include "ebb/core/node.h"
#include "ebb/core/reverse.h"

namespace ebb {

// Activation checkpointing (Chen et al., "Training deep nets with sublinear memory cost", 2016), in
// both modes: computes function(inputs) without keeping anything inside it for the gradient, and
// computes it again when the gradient needs it, drawing the same random numbers. Gradients are
// bit-equal to those without. In eager mode `function` is kept until the backward pass, so what it
// captures by reference must live until then.
Tensors recompute(std::function<Tensors(const Tensors&)> function, const Tensors& inputs,
                  EBB_CALL_SITE);
// The form for one tensor in and one out.
Tensor recompute(std::function<Tensor(const Tensor&)> function, const Tensor& input, EBB_CALL_SITE);

namespace detail {
// Finds out which tensors with a history a function reads: its arguments, and parameters that it
// captured.
class EdgeCollector {
 public:
  struct Found {
    Ref<Node> node;
    std::uint32_t output;
    Spec spec;
  };
  void note(const OpDef& op, Inputs inputs);
  const std::vector<Found>& found() const noexcept { return found_; }

 private:
  std::vector<Found> found_;
};
}  // namespace detail

}  // namespace ebb
