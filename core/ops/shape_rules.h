// Shared by the shape rules and public functions of several families.
#pragma once
#include "ebb/core/base/called.h"
#include "ebb/core/base/no_copy.h"
#include "ebb/core/ops/arguments.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/gradient_context.h"

namespace ebb::detail {

// Throws a ShapeError like a shape rule's, for problems that a public function finds before it
// applies `op`.
[[noreturn]] void fail(const OpDef& op, const std::string& text, const Operand& x);

using Operands = InlineVector<Operand, 6>;

// Checks the operands of a public function that applies other operators. Errors then name this
// function and the user's shapes; errors of these operators name it while the result lives.
// `function` has only a name and a shape rule.
[[nodiscard]] CalledScope check(const OpDef& function, const ListOf<Operand>& operands,
                                const Attributes& attributes = {});

// The shape given in braces. Throws ShapeError in the name of `function` where the numbers are no
// sizes.
Shape shape_of(const char* function, std::initializer_list<std::int64_t> sizes, CallSite site);

// The operand's tensor. Throws Error where it is a number, or a tensor that holds nothing.
const Tensor& tensor_of(const OpDef& op, const Operand& operand);

// Holds an operand of a public function that allocates before it reads it: when memory is short, a
// callback (allocator/watch.h) may give up the caller's handle. A temporary has no other owner and
// stays a temporary.
class HeldOperand : NoCopy {
 public:
  explicit HeldOperand(const Operand& x)
      : handle_(x.is_number() || x.expiring() ? Tensor() : x.tensor()),
        operand_(handle_.defined() ? Operand(handle_, x.site()) : x) {}
  const Operand& operator*() const noexcept { return operand_; }

 private:
  const Tensor handle_;
  const Operand operand_;
};

// An axis of the operand, or several, counted from the front. Throw ShapeError for an axis out of
// range or given twice.
int axis_of(const OpDef& op, int axis, const Operand& x);
Axes axes_of(const OpDef& op, const Axes& axes, const Operand& x);

// Apply an operator of one tensor operand, or of several, for the line of the first.
Tensor apply_to(const OpDef& op, const Operand& x, const Attributes& attributes = {});
Tensor apply_to(const OpDef& op, const ListOf<Operand>& operands,
                const Attributes& attributes = {});

// A gradient rule: that of input 0 is op(dy, the inputs with these numbers), with the node's
// attributes. Other inputs have none.
template <const OpDef& op, int... i>
Tensors gradient_by(const GradientContext& g) {
  const Tensors read{g.x(i)...};
  InlineVector<Input, 4> inputs{Operand(g.take_dy())};
  for (const Tensor& x : read) inputs.push_back(x);
  Tensors all(static_cast<std::size_t>(g.inputs()));
  all[0] = apply_one(op, inputs, g.node().attributes, g.site());
  return all;
}
// OpDef::keeps_input of a product: the gradient of a factor reads the other factor, the gradient of
// a bias reads neither.
inline bool other_factor(std::size_t i, const IndexSet& wants) { return i < 2 && wants.has(1 - i); }
// Gradient rules: dy is the gradient of input 0; no input has one.
Tensors passes_on(const GradientContext& g);
Tensors no_gradient(const GradientContext& g);

// The gradients of a node by a fused operator, whose `outputs` outputs are those of the first
// inputs. It leaves out the ones that nobody asks for.
Tensors apply_gradient(const OpDef& op, int outputs, Inputs inputs, const Attributes& attributes,
                       const GradientContext& g);

// Sets the height's and the width's number of an operator on images from an option. A row is an
// image of height 1: its option is the width's, and `height` the other.
inline void set_sides(std::int64_t (&sides)[2], const Size2d& both, std::int64_t /*height*/) {
  sides[0] = both.height;
  sides[1] = both.width;
}
inline void set_sides(std::int64_t (&sides)[2], std::int64_t of_row, std::int64_t height) {
  sides[0] = height;
  sides[1] = of_row;
}

// The attributes of an operator that takes a shape, in which -1 has a meaning of its own.
struct AskedShape {
  std::int64_t dims[kMaxRank] = {};
  std::int64_t rank = 0;

  explicit AskedShape(const Shape& shape) noexcept : rank(shape.rank()) {
    for (int i = 0; i < shape.rank(); ++i) dims[i] = shape.dim(i);
  }
  Shape shape() const { return Shape(std::span(dims, static_cast<std::size_t>(rank))); }
};

// The attributes of a view: the axes [begin, end) of x in another shape.
struct ViewAttributes {
  std::int64_t begin, end;
  AskedShape sizes;
};
// The attributes of squeeze: bit i is axis i of x, of size 1.
struct SqueezeAttributes {
  std::uint64_t axes = 0;
};

// The attributes of an operator that makes a tensor without a like: first what its kernel reads,
// then the shape and dtype.
template <class Told>
struct MakingAttributes {
  Told told;
  AskedShape shape;
  std::int64_t dtype;

  MakingAttributes(const Told& what, const Shape& of, DType type) noexcept
      : told(what), shape(of), dtype(static_cast<std::int64_t>(type)) {}
  void output(Inference& inference) const {
    inference.output(static_cast<DType>(dtype), shape.shape());
  }
};

// Whether two sizes, one of them possibly open, can turn out equal.
constexpr bool may_equal(std::int64_t a, std::int64_t b) noexcept {
  return a == b || a == kOpen || b == kOpen;
}
bool may_equal(const Shape& a, const Shape& b) noexcept;

// A shape that a and b both describe, with the sizes that either knows; may_equal(a, b) holds.
Shape merge(const Shape& a, const Shape& b) noexcept;

// The shape without its last axis.
Shape without_last(const Shape& shape);
// An axis that attributes name, from the front. Throws where the shape has no such axis.
int require_axis(const Inference& inference, const Shape& shape, std::int64_t axis);
// The shape with other axes in place of [begin, end).
Shape replace_axes(const Inference& inference, const Shape& shape, int begin, int end,
                   const Shape& by);

// Whether `from` can broadcast to `to` by NumPy's rules, as far as sizes are known.
bool broadcasts_to(const Shape& from, const Shape& to) noexcept;
// The shape to which a and b broadcast by NumPy's rules. Open dimensions stay open unless the other
// operand's size decides.
Shape broadcast(const Inference& inference, const Shape& a, const Shape& b);

// Throws unless the first `count` inputs are floating, all of one dtype.
void require_arithmetic(const Inference& inference, std::size_t count);
inline void require_arithmetic(const Inference& inference) {
  require_arithmetic(inference, inference.inputs.size());
}
// The message of shape rules for inputs that are not floating.
inline constexpr const char* kTakesFloating = "takes f32, f64, f16 or bf16 (cast() converts)";
inline bool is_scalar(const Spec& spec, DType type) noexcept {
  return spec.dtype == type && spec.shape.rank() == 0;
}

// A draw {key, counter} (core/kernels/random.h).
inline bool is_draw(const Spec& spec) noexcept {
  return spec.dtype == DType::i64 && spec.shape.rank() == 1 && may_equal(spec.shape.dim(0), 2);
}

// Throws unless input i is a scalar of this dtype: "`what` must be an i64 scalar".
void require_scalar(const Inference& inference, std::size_t i, DType dtype, const char* what);
// Makes output 0 like the first input, as updates in place do.
void output_like_first(Inference& inference);
// The shape rule of an operator whose output is like its first input; floating.
void same_shape(Inference& inference);
// The shape rule of tensors of one floating dtype that broadcast by NumPy's rules.
void infer_pointwise(Inference& inference);

// is_identity where equal shapes mean equal values.
bool keeps_shape(const MemoryQuery& query);

}  // namespace ebb::detail
