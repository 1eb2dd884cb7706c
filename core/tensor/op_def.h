#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "ebb/core/base/call_site.h"
#include "ebb/core/base/inline_vector.h"
#include "ebb/core/kernels/kernel.h"
#include "ebb/core/tensor/tensor.h"

namespace ebb {

struct OpDef;
class GradientContext;
class Runtime;

using Specs = InlineVector<Spec, 4>;

// What a shape rule sees and fills in. It is the only check of an operator's inputs, and runs when
// a node is built (dimensions may be open) and again when shapes are fed.
struct Inference {
  const OpDef& op;
  std::span<const Spec> inputs;
  const Attributes& attributes;
  CallSite site;
  Specs& outputs;

  template <class T>
  const T& attribute() const noexcept {
    return attributes.get<T>();
  }
  // Throws ShapeError for more elements than a tensor can have.
  void output(DType dtype, const Shape& shape) {
    if (!shape.is_countable()) fail("the result is too large: " + detail::too_large(shape));
    outputs.emplace_back(Spec{dtype, shape});
  }
  // Throws ShapeError "[op] text; inputs are f32[2, 3], f32[4] (file:line)".
  [[noreturn]] void fail(const std::string& text) const;
  void require(bool condition, const char* text) const {
    if (!condition) fail(text);
  }
};

// What a gradient rule reads again.
struct Keeps {
  Mask inputs = 0;
  Mask outputs = 0;
};
constexpr Keeps input(int i) noexcept { return {bit(i), 0}; }
constexpr Keeps output(int i) noexcept { return {0, bit(i)}; }
constexpr Keeps operator|(Keeps a, Keeps b) noexcept {
  return {a.inputs | b.inputs, a.outputs | b.outputs};
}

// An operator: constant data, from which both executors, reverse mode, the planner and the tests
// work. One definition per operator, in the file of its family in core/ops/.
struct OpDef {
  const char* name;
  // The shape rule; it reads open dimensions with Shape::dim.
  void (*infer)(Inference&);
  // The gradient rule: one tensor per input, not defined() where there is nothing to pass on. It is
  // written in the public vocabulary, so on symbolic tensors it adds nodes. Null: not
  // differentiable unless `compose` is there.
  Tensors (*gradient)(const GradientContext&) = nullptr;
  // The same outputs from differentiable operators, for an operator without gradient rule (a fused
  // backward): reverse mode goes through this instead. The tape then keeps every input.
  Tensors (*compose)(std::span<const Tensor> inputs, const Attributes&) = nullptr;
  Keeps keeps = {};
  // The same where it depends on which inputs want a gradient (a bit each); null: always `keeps`.
  Keeps (*keeps_for)(Mask wants) = nullptr;
  // Inputs of which only the shape is needed: their memory is not read, and not kept alive.
  Mask shape_only = 0;
  // Further ones where that depends on the attributes, as of a backward pass that not all of its
  // results are asked of; null: none.
  Mask (*shape_only_for)(const Attributes&) = nullptr;
  // Inputs whose memory output 0 may take over, when it has their size and nobody else needs them.
  Mask takes_over = 0;
  // Inputs whose memory the kernel may use up where it is told that nobody needs them any more
  // (KernelContext::destroyed); elsewhere it works in workspace. None of those of takes_over.
  Mask destroys = 0;
  // Inputs that are written in place. Output 0 is then the first of them, in its new version.
  Mask updates = 0;
  // Of those, inputs whose old values nothing reads: where that is all of a memory, it is as if
  // new.
  Mask overwrites = 0;
  // Outputs that exist for the gradient only, left out where no gradient is asked for.
  Mask optional_outputs = 0;
  // Further outputs that a plan leaves out where nobody reads them. (Eager cannot know.)
  Mask skippable_outputs = 0;
  // Random, update, statistics: never merged, folded, repeated or reordered.
  bool stateful = false;
  // No application but a source: a leaf of the tape, or a variable, captured tensor or placeholder
  // of a graph. Its memory is state: updates of it are effects and no part of a history.
  bool is_source = false;
  // Inputs that no gradient flows to, whatever depends on them: labels, conditions, what detach()
  // is given.
  Mask stops_gradient = 0;
  // Output 0 is a view of input 0, at this byte offset. No kernel runs.
  std::size_t (*view)(const MemoryQuery&) = nullptr;
  // Output 0 is input 0 on another device. No kernel runs.
  bool moves = false;
  // Whether, with these shapes, output 0 equals input 0: the graph may then drop the node.
  bool (*is_identity)(const MemoryQuery&) = nullptr;
  DeviceKernel cpu = {};
};

// The inputs of an application of which only the shape is needed.
inline Mask shape_only_inputs(const OpDef& op, const Attributes& attributes) {
  return op.shape_only | (op.shape_only_for ? op.shape_only_for(attributes) : 0);
}

// What the gradient of `op` keeps when it is asked for the inputs of `wants`.
inline Keeps keeps_of(const OpDef& op, Mask wants) noexcept {
  if (op.keeps_for) return op.keeps_for(wants);
  if (op.gradient) return op.keeps;
  // The composed form computes the operator again from all it was given.
  return op.compose ? Keeps{kAll & ~op.shape_only, 0} : Keeps{};
}

// The kernel and rules of an operator on a device. Throws Error where it has none.
const DeviceKernel& kernel_of(const OpDef& op, const Runtime& runtime);

}  // namespace ebb
