#pragma once
#include <span>
#include <string_view>

#include "ebb/core/tensor/tensor.h"

namespace ebb::optim {

// The dtype of moments and accumulated gradients unless one is chosen; a rule computes in it too.
// It is the parameter's, but f32 beside f16 and bf16, in which small additions would be lost.
constexpr DType state_dtype_of(DType parameter) noexcept {
  return is_half(parameter) ? DType::f32 : parameter;
}

// One parameter in one step, as an update rule sees it. Tensors have state_dtype_of() the parameter
// unless said otherwise, so that no rule computes in 16 bits. None has a history.
struct RuleInput {
  Tensor parameter;
  Tensor gradient;                // of the parameter's shape
  std::span<const Tensor> slots;  // of that shape, own dtype, in the order of Rule::slots()
  Tensor step;                    // f64[]: steps made, this one included; 1 in the first
  Tensor rate;                    // the learning rate, a scalar
  std::string_view name = {};     // of the parameter
};

// The new values, in the dtypes of RuleInput; the optimizer rounds a parameter of 16 bits. An
// undefined tensor leaves the old value.
struct RuleResult {
  Tensor parameter;
  Tensors slots;  // as many as there are
};

// An update rule: the state that an optimizer keeps beside each parameter, and how a step changes
// both. Written once for both modes, in the operators of ebb; holds options only. Pass it to
// Optimizer. docs/guide/own.md has one.
//
// The optimizer computes the new values of all parameters before it writes the first, so a rule
// that throws changes nothing; in eager all new values are alive until then. In an Accumulator
// every micro-step computes them from the mean gradient so far; they are written when an update is
// due. The rules that come with ebb are one operator each, in place.
class Rule {
 public:
  virtual ~Rule() = default;
  // Names its slots: "momentum" gives "hidden.weight/momentum.velocity" and "momentum/step". Its
  // own, and without '/', '.' and ':'.
  virtual const char* name() const noexcept = 0;
  // The slots beside each parameter, zero before the first step. Names without '/', '.' and ':',
  // other than "accumulated".
  virtual std::span<const char* const> slots() const noexcept = 0;
  // The dtype of the slot-th of them beside a parameter of this dtype; not f16 or bf16.
  virtual DType slot_dtype(std::size_t slot, DType parameter) const noexcept {
    static_cast<void>(slot);
    return state_dtype_of(parameter);
  }
  // Whether each element's new value follows from that element of parameter, gradient and slots
  // alone. Ranks of a world with .sharding then update a share each: flat tensors. Others refuse.
  virtual bool is_elementwise() const noexcept { return false; }
  // The new values of one parameter and its slots, of their shapes and dtypes. Updates nothing in
  // place, which would be an Error.
  virtual RuleResult update(const RuleInput& input) const = 0;
};

}  // namespace ebb::optim
