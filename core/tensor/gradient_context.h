#pragma once
#include <span>
#include <utility>

#include "ebb/core/tensor/node.h"

namespace ebb {

// A gradient rule's view of the node it differentiates.
class GradientContext {
 public:
  virtual ~GradientContext() = default;

  const Node& node() const noexcept { return node_; }
  template <class T>
  const T& attribute() const noexcept {
    return node_.attributes.get<T>();
  }
  CallSite site() const noexcept { return node_.site; }
  int inputs() const noexcept { return static_cast<int>(node_.inputs.size()); }

  // Whether anybody asks for the gradient of input i; the rule may leave out the others.
  bool wants(int i) const noexcept { return wants_.has(static_cast<std::size_t>(i)); }
  // The gradient of output i. Not defined() if none arrived, which only an operator with several
  // outputs has to expect.
  const Tensor& dy(int i = 0) const noexcept { return dys_[static_cast<std::size_t>(i)]; }
  // dy(i) for its last reader in the rule: an operator may use its memory up.
  Tensor&& take_dy(int i = 0) const noexcept {
    return std::move(dys_[static_cast<std::size_t>(i)]);
  }
  // Input i and output i: with values if the operator declared that its gradient keeps them, else
  // with shape only (enough for sum_like, fill_like). Throws Error if a kept tensor has been
  // updated in place since.
  virtual Tensor x(int i) const = 0;
  virtual Tensor y(int i = 0) const = 0;
  // x(i) and y(i) for their last reader in the rule, in a statement where nothing else reads them.
  // If this pass frees the record, the memory passes to the caller, and an operator that gets it as
  // a temporary may use it up. After that x and y have the shape only.
  virtual Tensor take_x(int i) const { return x(i); }
  virtual Tensor take_y(int i = 0) const { return y(i); }

 protected:
  GradientContext(const Node& node, std::span<Tensor> dys, const IndexSet& wants) noexcept
      : node_(node), dys_(dys), wants_(wants) {}
  const Node& node_;
  const std::span<Tensor> dys_;
  const IndexSet& wants_;
};

}  // namespace ebb
