#pragma once
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

// One input of an application. Expiring: a temporary, whose memory the operator may use up.
struct Input {
  const Tensor* tensor = nullptr;
  bool expiring = false;

  Input() = default;
  Input(const Tensor& t) noexcept : tensor(&t) {}             // NOLINT: implicit by design
  Input(Tensor&& t) noexcept : tensor(&t), expiring(true) {}  // NOLINT
  Input(const Operand& operand) noexcept                      // NOLINT
      : tensor(&operand.tensor()), expiring(operand.expiring()) {}
};

using Inputs = std::span<const Input>;

// Applies an operator. No other function knows that there are two modes: a symbolic input makes a
// node in its graph, as does every operator while a graph traces the thread; otherwise the operator
// runs now. Outputs in `unwanted` are left out, not defined(), if the operator can skip them
// (OpDef::optional_outputs); a graph finds out by itself which outputs are read. Throws the shape
// rule's errors, Error for tensors of two graphs or two devices, OutOfMemory.
Tensors apply(const OpDef& op, Inputs inputs, const Attributes& attributes, CallSite site,
              const IndexSet& unwanted = {});

// Applies an operator without inputs on `device`.
Tensors apply_on(const Device& device, const OpDef& op, const Attributes& attributes,
                 CallSite site);

// Applies an operator with one output.
template <std::size_t N>
Tensor apply_one(const OpDef& op, const Input (&inputs)[N], const Attributes& attributes,
                 CallSite site) {
  return std::move(apply(op, Inputs(inputs, N), attributes, site)[0]);
}

inline Tensor apply_one(const OpDef& op, Inputs inputs, const Attributes& attributes,
                        CallSite site) {
  return std::move(apply(op, inputs, attributes, site)[0]);
}

namespace detail {
// Seam 1: defined by eager/. `device` is needed where the inputs do not tell it: there are none, or
// the operator moves its input.
Tensors run_now(const OpDef& op, Inputs inputs, const Attributes& attributes, CallSite site,
                const IndexSet& unwanted, const Device* device = nullptr);
}  // namespace detail

}  // namespace ebb
