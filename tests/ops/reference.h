// What each operator computes, written a second time: plain loops over doubles that share no code
// with its kernel, its gradient or the operators it is composed of.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "ebb/core/tensor/op_def.h"

namespace ebb::tests {

// A tensor's values, whatever its dtype, row-major.
struct Array {
  Shape shape;
  std::vector<double> values;

  Array() = default;
  // Zeros.
  explicit Array(const Shape& of) : shape(of), values(static_cast<std::size_t>(of.elements())) {}
  double& operator[](std::int64_t i) { return values[static_cast<std::size_t>(i)]; }
  double operator[](std::int64_t i) const { return values[static_cast<std::size_t>(i)]; }
  std::int64_t elements() const noexcept { return static_cast<std::int64_t>(values.size()); }
};
using Arrays = std::vector<Array>;

// One application. Inputs that are only looked at for their shape have values nevertheless.
struct Application {
  const Arrays& inputs;
  const Attributes& attributes;
  // What the shape rule said, for dtypes, and for shapes that only the caller knows (a reshape's).
  std::span<const Spec> outputs;

  const Array& operator[](std::size_t i) const { return inputs[i]; }
  template <class T>
  const T& attribute() const noexcept {
    return attributes.get<T>();
  }
};

struct Reference {
  const OpDef* op;
  // Every output but those that are opaque; of an operator that updates in place, the new values of
  // the inputs that it updates.
  std::function<Arrays(const Application&)> compute;
  double error = 0;  // of the reference itself, relative
  // Unit roundoffs that a result of 16 bits may be off: more than one where the operator is given,
  // or keeps, what has been rounded before.
  double roundings = 1;
};

struct References {
  std::vector<Reference> all;

  Reference& add(const OpDef& op, std::function<Arrays(const Application&)> compute) {
    return all.emplace_back(Reference{&op, std::move(compute)});
  }
};

// One for every operator: those that samples carry, and those of whole families.
std::vector<Reference> all_references();

// The families, each beside its samples.
void add_reduce_references(References& references);
void add_linear_references(References& references);
void add_conv_references(References& references);
void add_pool_references(References& references);
void add_attention_references(References& references);
void add_loss_references(References& references);
void add_norm_references(References& references);
void add_random_references(References& references);
void add_recurrent_references(References& references);
void add_shape_references(References& references);
void add_index_references(References& references);
void add_sequence_references(References& references);
void add_layout_references(References& references);
void add_order_references(References& references);
void add_statistic_references(References& references);
void add_update_references(References& references);
void add_memory_figure_references(References& references);
void add_optim_references(References& references);

// f of each element.
Array map(const Array& x, const std::function<double(double)>& f);

// NumPy's rule: axes are aligned at the end, and one of size 1 is repeated.
Shape broadcast(const Shape& a, const Shape& b);
// f of each element of a and the one of b that it meets.
Array zip(const Array& a, const Array& b, double (*f)(double, double));

using Index = std::vector<std::int64_t>;

// Calls body with each index into shape, in the order of memory.
void for_each_index(const Shape& shape, const std::function<void(const Index&)>& body);
// Where the element of this index is in an array that broadcasts to it by NumPy's rules.
std::int64_t position(const Shape& shape, const Index& index);

}  // namespace ebb::tests
