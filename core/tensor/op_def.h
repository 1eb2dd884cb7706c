#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "ebb/core/base/call_site.h"
#include "ebb/core/base/inline_vector.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/tensor/tensor.h"

namespace ebb {

struct OpDef;
struct IndexRange;  // core/tensor/index_check.h
class GradientContext;

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
  Positions inputs = {};
  Positions outputs = {};
};
consteval Keeps input(int i) { return {bit(i), {}}; }
consteval Keeps output(int i) { return {{}, bit(i)}; }
constexpr Keeps operator|(Keeps a, Keeps b) { return {a.inputs | b.inputs, a.outputs | b.outputs}; }

// An operator: constant data, from which both executors, reverse mode, the planner and the tests
// work. One definition per operator, in the file of its family in core/ops/. It may take any number
// of inputs: sets of them are Positions, which go on where that number is open (index_set.h).
struct OpDef {
  const char* name;
  // The shape rule; it reads open dimensions with Shape::dim.
  void (*infer)(Inference&);
  // The gradient rule: one tensor per input, not defined() where there is nothing to pass on. It is
  // written in the public vocabulary, so on symbolic tensors it adds nodes. Null: not
  // differentiable unless `compose` is there.
  Tensors (*gradient)(const GradientContext&) = nullptr;
  // The same outputs from differentiable operators, for an operator without gradient rule (a fused
  // backward): reverse mode goes through this instead. Those of `unwanted` may be left out, not
  // defined(). The tape then keeps every input.
  Tensors (*compose)(std::span<const Tensor> inputs, const Attributes&,
                     const IndexSet& unwanted) = nullptr;
  Keeps keeps = {};
  // Whether it keeps input i, and output i, where that depends on which inputs want a gradient;
  // null: as `keeps` says.
  bool (*keeps_input)(std::size_t i, const IndexSet& wants) = nullptr;
  bool (*keeps_output)(std::size_t i, const IndexSet& wants) = nullptr;
  // Inputs of which only the shape is needed: their memory is not read, and not kept alive.
  Positions shape_only = {};
  // Whether input i is one of them where nobody reads these outputs; null: only those above are.
  bool (*is_shape_only)(std::size_t i, const IndexSet& unwanted) = nullptr;
  // Inputs whose memory output 0 may take over, when it has their size and nobody else needs them.
  Positions takes_over = {};
  // Inputs whose memory the kernel may use up where it is told that nobody needs them any more
  // (KernelContext::destroyed); elsewhere it works in workspace. None of those of takes_over.
  Positions destroys = {};
  // Inputs that are written in place, input 0 among them. Output 0 is then it, in its new version.
  Positions updates = {};
  // Whether nothing reads input 0's old values: where that is all of a memory, it is as if new.
  bool overwrites = false;
  // Outputs that exist for the gradient only, left out where no gradient is asked for.
  Positions optional_outputs = {};
  // Further outputs that are left out where nobody reads them: in a graph the plan knows, eager is
  // told by who applies the operator.
  Positions skippable_outputs = {};
  // Random, update, statistics: never merged, folded, repeated or reordered.
  bool stateful = false;
  // No application but a source: a leaf of the tape, or a variable, captured tensor or placeholder
  // of a graph. Its memory is state: updates of it are effects and no part of a history.
  bool is_source = false;
  // Inputs that no gradient flows to, whatever depends on them: labels, conditions, what detach()
  // is given.
  Positions stops_gradient = {};
  // Its indices or labels, and what they choose from. Null: it has none.
  IndexRange (*indices)(const KernelContext&) = nullptr;
  // Output 0 is a view of input 0, at this byte offset. No kernel runs.
  std::size_t (*view)(const MemoryQuery&) = nullptr;
  // Output 0 is a copy of elements of input 0, where other libraries would have a view: an update
  // in place of a temporary one is refused, since it would not reach input 0.
  bool selects = false;
  // Output 0 is input 0 on another device. No kernel runs.
  bool moves = false;
  // Whether, with these shapes, output 0 equals input 0: the graph may then drop the node.
  bool (*is_identity)(const MemoryQuery&) = nullptr;
  DeviceKernel cpu = {};
  DeviceKernel cuda = {};
};

// Whether an application needs only the shape of its input i.
inline bool needs_only_shape(const OpDef& op, std::size_t i, const IndexSet& unwanted) {
  return op.shape_only.has(i) || (op.is_shape_only && op.is_shape_only(i, unwanted));
}

// Whether the gradient of `op` keeps input i, or output i, when it is asked for those of `wants`.
inline bool keeps_input(const OpDef& op, std::size_t i, const IndexSet& wants) {
  if (op.keeps_input) return op.keeps_input(i, wants);
  // The composed form computes the operator again from all it was given.
  return op.gradient ? op.keeps.inputs.has(i) : op.compose && !op.shape_only.has(i);
}
inline bool keeps_output(const OpDef& op, std::size_t i, const IndexSet& wants) {
  return op.keeps_output ? op.keeps_output(i, wants) : op.keeps.outputs.has(i);
}

namespace detail {
// What an operator of the user's may have forgotten. Throw Error.
void require_memory_rule(const OpDef& op, const DeviceKernel& kernel, CallSite site);
void require_shape_rule(const OpDef& op, CallSite site);
}  // namespace detail

}  // namespace ebb
