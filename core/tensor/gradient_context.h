#pragma once
#include "ebb/core/tensor/node.h"

namespace ebb {

// What a gradient rule sees of the node it differentiates.
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

  // Whether anybody asks for the gradient of input i; the rule may leave the others out.
  virtual bool wants(int i) const noexcept = 0;
  // The gradient of output i. Not defined() where none arrived, which only an operator with several
  // outputs has to expect.
  virtual const Tensor& dy(int i = 0) const noexcept = 0;
  // The same for the one place of a rule that reads it last: an operator may use its memory up.
  virtual Tensor&& take_dy(int i = 0) const noexcept = 0;
  // Input i and output i: with values where the operator declared that its gradient keeps them,
  // otherwise only their shape (enough for sum_like, fill_like). Throws Error where a kept tensor
  // has been updated in place since.
  virtual Tensor x(int i) const = 0;
  virtual Tensor y(int i = 0) const = 0;
  // The same for the one place of a rule that reads it last, in a statement where nothing else
  // reads it: where this pass frees the record, its memory passes to the caller, and an operator
  // that is handed it as a temporary may use it up. x and y tell the shape only afterwards.
  virtual Tensor take_x(int i) const { return x(i); }
  virtual Tensor take_y(int i = 0) const { return y(i); }

 protected:
  explicit GradientContext(const Node& node) noexcept : node_(node) {}
  const Node& node_;
};

}  // namespace ebb
