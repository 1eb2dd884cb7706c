// All operators with sample calls, for the tests that loop over them.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {

// Operators of core and of the optimizers.
std::vector<const OpDef*> every_operator();

// Kind of random values, with its dtype; kinds without one have the sample's dtype.
enum class Values {
  any,              // in [-2, 2]
  positive,         // in [0.5, 2]
  apart_from_zero,  // 0.5 to 2 in size, of either sign
  labels,           // i32 in [0, 5)
  long_labels,      // i64 in [0, 5)
  count,            // i64 in [1, 9]
  rate,             // f64 in [0.01, 0.1]
  ready,            // bool, true
  not_ready,        // bool, false
  draw,             // i64
  flags,            // bool, either
  within_one,       // in [-0.9, 0.9]
  above_one,        // in [1.2, 3]
};

struct SampleInput {
  Shape shape;  // kOpen: the size of the batch
  Values values = Values::any;
  std::optional<DType> dtype = {};  // none: the sample's
};

// Body of a sample's call with inputs `in`; the listed tensors are its results.
#define EBB_CALL(...) [=]([[maybe_unused]] const Tensors& in) -> Tensors { return {__VA_ARGS__}; }

struct Sample {
  const OpDef* op;
  std::string name;
  std::vector<SampleInput> inputs;
  std::function<Tensors(const Tensors&)> call;
  int order = 2;                  // highest derivative to check; 0: none
  bool any_dtype = false;         // the operator takes every dtype
  bool any_shape = false;         // accepts an additional axis
  Positions state = op->updates;  // inputs that the call writes
  // Largest batch to try. Smaller where the work of operator or reference grows with its square.
  std::int64_t largest_batch = 1 << 20;
  // Reference of the operator, unless its family has one.
  std::function<Arrays(const Application&)> reference = nullptr;
  // Function of one number: the exact value, and the ulps that the operator may be off. Function of
  // two numbers: the value to compare with at extremes.
  long double (*exact)(long double) = nullptr;
  double ulps = 0;
  double (*of_two)(double, double) = nullptr;
};

inline constexpr DType kFloating[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

// At least one sample for every operator, for tensors of a floating `dtype`. f16 and bf16 have
// fewer: their kernels are the float kernels between conversions.
std::vector<Sample> all_samples(DType dtype);
// Batch sizes to try. The emulated GPU tries the first and the last for f32, and one for other
// dtypes. 16 bits try fewer, and so does f64 on a GPU, which shares the host's formulas.
inline std::vector<std::int64_t> batches(DType dtype, std::vector<std::int64_t> of_float) {
  if (on_emulated_cuda() && dtype != DType::f32) return {3};
  if (is_half(dtype) || (on_cuda() && dtype == DType::f64)) return {0, 3};
  return on_emulated_cuda() ? std::vector{of_float.front(), of_float.back()} : of_float;
}

// Call of an operator with the inputs of its sample.
std::function<Tensors(const Tensors&)> applying(const OpDef& op, const Attributes& attributes = {});

// Outputs of an operator whose bits `wanted` has. The others among the first three are not made.
Tensors wanted_of(const OpDef& op, const Tensors& inputs, const Attributes& attributes,
                  unsigned wanted);

// Sample of f(a, b) for two tensors, and for a tensor beside a number, which the operator holds as
// a double.
using Binary = Tensor (*)(const Operand&, const Operand&);
using FunctionOfTwo = double (*)(double, double);
Sample of_two(const OpDef& op, const std::string& how, Binary call, FunctionOfTwo f,
              const SampleInput& a, const SampleInput& b);
Sample beside(const BinaryOpDef& op, const std::string& how, Binary call, FunctionOfTwo f,
              const SampleInput& x, double number, bool left);

inline constexpr int kNoGradient = 0;

// Sample of an operator: its name says how it is called, unless that is empty. `order` is the
// highest derivative to check.
Sample sample_of(const OpDef& op, const std::string& how, std::vector<SampleInput> inputs,
                 std::function<Tensors(const Tensors&)> call, int order = 2);
// The same, of an operator that accepts an additional axis.
Sample of_any_shape(const OpDef& op, const std::string& how, std::vector<SampleInput> inputs,
                    std::function<Tensors(const Tensors&)> call, int order = 2);
// The same, of an operator that takes every dtype.
Sample moving_sample(const OpDef& op, const std::string& how, std::vector<SampleInput> inputs,
                     std::function<Tensors(const Tensors&)> call, bool any_shape = false);

// Adds the samples and references of a family of operators, which are in a file of their own.
using Family = void(std::vector<Sample>& samples, References& references, DType dtype);
Family pointwise_family, comparison_family, copy_family, create_family, reduce_family,
    linear_family, conv_family, pool_family, attention_family, loss_family, cross_entropy_family,
    norm_family, random_family, recurrent_family, shape_family, index_family, sequence_family,
    layout_family, where_family, order_family, statistic_family, update_family,
    memory_figure_family, collective_family, optim_family;

}  // namespace ebb::tests
