// Update rules whose step is one operator, in place.
#pragma once
#include <optional>

#include "ebb/core/tensor/apply.h"
#include "ebb/optim/detail/options.h"
#include "ebb/optim/rule.h"
#include "ebb/optim/weight_decay.h"

namespace ebb::optim {

// A condition on an update: unless `ready` (bool scalar) it does nothing, else it divides the
// gradient by `count` (i64 scalar). A gated operator has the two as further inputs.
struct Gate {
  Tensor ready = {};  // undefined, as is count: not gated
  Tensor count = {};

  bool defined() const noexcept { return ready.defined(); }
};

struct FusedInput {
  const Tensor& parameter;
  const Tensor& gradient;  // of the parameter's shape; its dtype or f32 or f64
  std::span<const Tensor> slots;
  const Tensor& step;   // i64[]: steps made, this one included
  const Tensor& rate;   // f64[]
  const Tensor& scale;  // f64; its first element scales the gradient. May be undefined
  const Gate& gate;     // updates only if open; divides the gradient by its count
  bool decays = true;
  double clip_value = 0;  // bound of the gradient's elements, if above 0
};

// A rule whose update is one operator that works in place and allocates nothing, so that a step
// needs no memory for new values.
class FusedRule : public Rule {
 public:
  // Slots have the dtype `state`, or else state_dtype_of() the parameter.
  explicit FusedRule(std::optional<DType> state, DecayOnly decay_only = {})
      : state_(state), decay_only_(std::move(decay_only)) {}
  DType slot_dtype(std::size_t, DType parameter) const noexcept final {
    return state_.value_or(state_dtype_of(parameter));
  }
  bool is_elementwise() const noexcept final { return true; }
  // Whether weight decay applies to this parameter.
  bool decays(const Parameters::Entry& parameter) const {
    return !decay_only_ || decay_only_(parameter);
  }
  // Updates the parameter and its slots. Returns the parameter in its new version.
  virtual Tensor update_in_place(const FusedInput& input) const = 0;
  // Runs update_in_place() on copies, for rules that are built on this one.
  RuleResult update(const RuleInput& input) const final;

 private:
  const std::optional<DType> state_;
  const DecayOnly decay_only_;
};

// Applies the operator of a rule. Returns the parameter in its new version.
Tensor apply_update(const OpDef& op, const FusedInput& input, const Attributes& attributes);

// The rule whose update is an operator of optim/kernels/rules.inc.
template <class Update>
class UpdateRule final : public FusedRule {
 public:
  using Attributes = typename Update::Attributes;

  // `slots` are names that must outlive the rule. Checks the options that all rules share; throws
  // Error for one out of range.
  template <class Options>
  UpdateRule(const char* name, std::span<const char* const> slots, const OpDef& op,
             const Attributes& attributes, const Options& options)
      : FusedRule(options.state_dtype, options.decay_only),
        name_(name),
        slots_(slots),
        op_(op),
        attributes_(attributes) {
    require_not_negative(name, "weight_decay", options.weight_decay);
    require_state_dtype(name, "state_dtype", options.state_dtype);
  }

  const char* name() const noexcept override { return name_; }
  std::span<const char* const> slots() const noexcept override { return slots_; }
  Tensor update_in_place(const FusedInput& in) const override {
    Attributes attributes = attributes_;
    if (!in.decays) attributes.weight_decay = 0;
    attributes.clip_value = in.clip_value;
    return apply_update(op_, in, attributes);
  }

 private:
  const char* const name_;
  const std::span<const char* const> slots_;
  const OpDef& op_;
  const Attributes attributes_;
};

// The shape rule of an update (optim/kernels/rules.h). `arrays` counts parameter, state and
// gradient, which have one shape; the parameter comes first and is output 0. Each is f32 or f64;
// beside a parameter of f16 or bf16 the state is f32, and the gradient f32 or of the parameter's
// dtype.
void infer_update(Inference& inference, std::size_t arrays);

// The first half of the shape rule of an operator that adds up `values` in its first input, the
// `sums` of messages, which are f32 or f64; f32 for values of 16 bits.
void infer_sums(Inference& inference, const char* sums, const char* values);

// The operator of a rule.
template <class Update>
constexpr OpDef update_operator(const char* name, Kernel cpu, Kernel cuda,
                                MergedKernel cuda_merged) {
  static_assert(Update::kSlots <= 3);
  constexpr Positions kWritten[] = {bit(0), bit(0) | bit(1), bit(0) | bit(1) | bit(2),
                                    bit(0) | bit(1) | bit(2) | bit(3)};
  return {.name = name,
          .infer = [](Inference& inference) { infer_update(inference, 2 + Update::kSlots); },
          .updates = kWritten[Update::kSlots],
          .stateful = true,
          .cpu = {cpu},
          .cuda = {.run = cuda, .run_merged = cuda_merged}};
}

}  // namespace ebb::optim
