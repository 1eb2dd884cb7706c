// References: the values of each operator, written a second time. They are plain loops over doubles
// that share no code with the kernel, the gradient or the operators that it is composed of.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <vector>

#include "ebb/core/tensor/op_def.h"

namespace ebb::tests {

// Values of a tensor of any dtype, row-major.
struct Array {
  Shape shape;
  std::vector<double> values;

  Array() = default;
  // Makes an array of zeros.
  explicit Array(const Shape& of) : shape(of), values(static_cast<std::size_t>(of.elements())) {}
  double& operator[](std::int64_t i) { return values[static_cast<std::size_t>(i)]; }
  double operator[](std::int64_t i) const { return values[static_cast<std::size_t>(i)]; }
  std::int64_t elements() const noexcept { return static_cast<std::int64_t>(values.size()); }
};
using Arrays = std::vector<Array>;

// One application of an operator. Even inputs that are needed only for their shape have values.
struct Application {
  const Arrays& inputs;
  const Attributes& attributes;
  // Result of the shape rule: gives dtypes, and shapes that only the caller knows (as in reshape).
  std::span<const Spec> outputs;

  const Array& operator[](std::size_t i) const { return inputs[i]; }
  template <class T>
  const T& attribute() const noexcept {
    return attributes.get<T>();
  }
};

struct Reference {
  const OpDef* op;
  // Computes every output that is not opaque. For an operator that updates in place: the new values
  // of the inputs that it updates.
  std::function<Arrays(const Application&)> compute;
  double error = 0;  // relative error of the reference itself
  // Allowed error of 16-bit results in unit roundoffs. More than one where the operator is given,
  // or keeps, values that were already rounded.
  double roundings = 1;
};

struct References {
  std::vector<Reference> all;

  Reference& add(const OpDef& op, std::function<Arrays(const Application&)> compute) {
    return all.emplace_back(Reference{&op, std::move(compute)});
  }
  Reference& add(const OpDef& op, Array (*compute)(const Application&)) {
    return add(op, [compute](const Application& a) -> Arrays { return {compute(a)}; });
  }
};

// One reference for every operator, from its sample or from its family.
std::vector<Reference> all_references();

// Applies f to each element.
Array map(const Array& x, const std::function<double(double)>& f);

// Broadcasts by NumPy's rule: shapes are aligned at the end, and axes of size 1 are repeated.
Shape broadcast(const Shape& a, const Shape& b);
// Applies f to the pairs of elements that broadcasting a and b gives.
Array zip(const Array& a, const Array& b, double (*f)(double, double));

using Index = std::vector<std::int64_t>;

// The index without the axes that are reduced, which are a bit set. With `keep` they stay, as 0.
Index without_axes(const Index& index, std::uint64_t axes, bool keep);

// Calls body with each index into shape, in the order of memory.
void for_each_index(const Shape& shape, const std::function<void(const Index&)>& body);
// Flat position of the element that broadcasts to this index by NumPy's rules. The index may have
// more axes than the shape.
std::int64_t position(const Shape& shape, const Index& index);

}  // namespace ebb::tests
