#pragma once
#include <cstdint>
#include <optional>
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

// Argument of a shape rule, which reads inputs and adds outputs. The rule is the only check of an
// operator's inputs. It runs when a node is built (dimensions may be open) and again when shapes
// are fed.
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

// Inputs and outputs that a gradient rule reads again.
struct Keeps {
  Positions inputs = {};
  Positions outputs = {};
};
consteval Keeps input(int i) { return {bit(i), {}}; }
consteval Keeps output(int i) { return {{}, bit(i)}; }
constexpr Keeps operator|(Keeps a, Keeps b) { return {a.inputs | b.inputs, a.outputs | b.outputs}; }

// An operator: constant data from which both executors, reverse mode, the planner and the tests
// work. One definition per operator, in the file of its family in core/ops/. For operators with any
// number of inputs, sets of them are Positions that may go on without end (index_set.h).
struct OpDef {
  const char* name;
  // The shape rule; it reads open dimensions with Shape::dim.
  void (*infer)(Inference&);
  // The gradient rule: returns one tensor per input, not defined() if there is nothing to pass on.
  // It is written in the public vocabulary, so on symbolic tensors it adds nodes. Null: not
  // differentiable unless `compose` is there.
  Tensors (*gradient)(const GradientContext&) = nullptr;
  // Computes the same outputs from differentiable operators, for an operator without a gradient
  // rule (a fused backward); reverse mode goes through it. Outputs in `unwanted` may be left out,
  // not defined(). The tape then keeps every input.
  Tensors (*compose)(std::span<const Tensor> inputs, const Attributes&,
                     const IndexSet& unwanted) = nullptr;
  Keeps keeps = {};
  // Whether the gradient keeps input i, or output i, if that depends on which inputs want a
  // gradient; null: as in `keeps`.
  bool (*keeps_input)(std::size_t i, const IndexSet& wants) = nullptr;
  bool (*keeps_output)(std::size_t i, const IndexSet& wants) = nullptr;
  // Inputs needed for their shape alone: their memory is neither read nor kept alive.
  Positions shape_only = {};
  // Whether input i is shape-only while nobody reads the outputs in `unwanted`; null: as in
  // `shape_only`.
  bool (*is_shape_only)(std::size_t i, const IndexSet& unwanted) = nullptr;
  // Inputs whose memory output 0 may take over, if it has their size and nobody else needs them.
  Positions takes_over = {};
  // Inputs whose memory the kernel may use up when KernelContext::destroyed permits it; otherwise
  // it takes workspace. Must not overlap takes_over.
  Positions destroys = {};
  // Inputs written in place, input 0 among them. Output 0 is then input 0 in its new version.
  Positions updates = {};
  // Whether nothing reads input 0's old values. An update of a whole memory then makes it as new.
  bool overwrites = false;
  // Outputs that exist for the gradient only, left out if no gradient is asked for.
  Positions gradient_outputs = {};
  // Further outputs that are left out if nobody reads them. A graph's plan knows; in eager the
  // caller of apply() says so.
  Positions optional_outputs = {};
  // Random, update, statistics: never merged, folded, repeated or reordered.
  bool stateful = false;
  // Exchanges data with other ranks. A graph runs these in the order in which they were recorded,
  // which is then the same on every rank. Its attributes are CollectiveAttributes.
  bool communicates = false;
  // A source rather than an application: a leaf of the tape; a variable, captured tensor or
  // placeholder of a graph. Its memory is state: updates of it are effects and not part of a
  // history.
  bool is_source = false;
  // Inputs that never get a gradient, whatever depends on them: labels, conditions, detach()'s.
  Positions stops_gradient = {};
  // Its indices or labels, and what they choose from. Null: it has none.
  IndexRange (*indices)(const KernelContext&) = nullptr;
  // Output 0 is a view of input 0, at this byte offset. No kernel runs.
  std::size_t (*view)(const MemoryQuery&) = nullptr;
  // Output 0 is a copy of elements of input 0 that in other libraries would be a view. An update in
  // place of a temporary one is refused, since it would not reach input 0.
  bool selects = false;
  // Output 0 is input 0 on another device. No kernel runs.
  bool moves = false;
  // An element of the output depends on the elements of the inputs in its place alone, as they
  // broadcast, and kernels need no memory: a graph may compute it together with others (fused.h).
  bool pointwise = false;
  // Whether, with these shapes, output 0 equals input 0: the graph may then drop the node.
  bool (*is_identity)(const MemoryQuery&) = nullptr;
  // Multiply-adds of an application, from its shapes: the estimate by which plans choose what to
  // compute again. Null: so few that the bytes moved decide.
  std::int64_t (*products)(const MemoryQuery&) = nullptr;
  DeviceKernel cpu = {};
  DeviceKernel cuda = {};
};

// A pointwise operator of two operands, either of which may be a plain number. The three forms are
// operators of their own, since they keep different things for their gradients.
struct BinaryOpDef {
  OpDef tensors;
  OpDef number_right;  // x op n
  OpDef number_left;   // n op x
  // The dtype that two tensors of different dtypes are cast to before the operator; nullopt refuses
  // them. Null refuses every such pair.
  std::optional<DType> (*common)(DType a, DType b) = nullptr;
};

// Whether an application needs only the shape of its input i.
inline bool needs_only_shape(const OpDef& op, std::size_t i, const IndexSet& unwanted) {
  return op.shape_only.has(i) || (op.is_shape_only && op.is_shape_only(i, unwanted));
}

// Whether the gradient of `op` keeps input i, or output i, if the inputs in `wants` want one.
inline bool keeps_input(const OpDef& op, std::size_t i, const IndexSet& wants) {
  if (op.keeps_input) return op.keeps_input(i, wants);
  // The composed form computes the operator again from all its inputs.
  return op.gradient ? op.keeps.inputs.has(i) : op.compose && !op.shape_only.has(i);
}
inline bool keeps_output(const OpDef& op, std::size_t i, const IndexSet& wants) {
  return op.keeps_output ? op.keeps_output(i, wants) : op.keeps.outputs.has(i);
}

namespace detail {
// Report rules missing from a user's operator. Throw Error.
void require_memory_rule(const OpDef& op, const DeviceKernel& kernel, CallSite site);
void require_shape_rule(const OpDef& op, CallSite site);
}  // namespace detail

}  // namespace ebb
