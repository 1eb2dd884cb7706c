#include "ebb/core/kernels/reduce.h"

#include "ebb/core/ops/reduce.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

bool reduces(const Reduction& reduction, std::size_t axis) {
  return (reduction.axes >> axis & 1) != 0;
}

// The axes that are left, those of size 1 among them where reduced ones are kept.
template <class Dims>
Index remaining(const Dims& dims, const Reduction& reduction, std::int64_t in_place_of_reduced) {
  Index left;
  for (std::size_t axis = 0; axis < dims.size(); ++axis) {
    if (!reduces(reduction, axis))
      left.push_back(dims[axis]);
    else if (reduction.keep)
      left.push_back(in_place_of_reduced);
  }
  return left;
}

// How many elements of `large` are summed into one.
double count(const Shape& large, const Reduction& reduction) {
  double n = 1;
  for (int axis = 0; axis < large.rank(); ++axis)
    if (reduces(reduction, static_cast<std::size_t>(axis))) n *= static_cast<double>(large[axis]);
  return n;
}

Array sum_over(const Array& x, const Reduction& reduction, bool mean) {
  const Index dims = remaining(x.shape.dims(), reduction, 1);
  Array out{Shape(std::span<const std::int64_t>(dims))};
  std::int64_t next = 0;
  for_each_index(x.shape, [&](const Index& index) {
    out[position(out.shape, remaining(index, reduction, 0))] += x[next++];
  });
  if (mean)
    for (double& value : out.values) value /= count(x.shape, reduction);
  return out;
}

}  // namespace

void add_reduce_references(std::vector<Reference>& references) {
  references.push_back({&sum_op, [](const Application& a) -> Arrays {
                          return {sum_over(a[0], a.attribute<Reduction>(), false)};
                        }});
  references.push_back({&mean_op, [](const Application& a) -> Arrays {
                          return {sum_over(a[0], a.attribute<Reduction>(), true)};
                        }});
  references.push_back({&any_op, [](const Application& a) -> Arrays {
                          return {map(sum_over(a[0], a.attribute<Reduction>(), false),
                                      [](double count) { return double(count > 0); })};
                        }});
  references.push_back({&all_op, [](const Application& a) -> Arrays {
                          const auto& reduction = a.attribute<Reduction>();
                          const double terms = count(a[0].shape, reduction);
                          return {map(sum_over(a[0], reduction, false),
                                      [=](double found) { return double(found == terms); })};
                        }});
  references.push_back({&sum_like_op, [](const Application& a) -> Arrays {
                          Array out(a[1].shape);
                          std::int64_t next = 0;
                          for_each_index(a[0].shape, [&](const Index& index) {
                            out[position(out.shape, index)] += a[0][next++];
                          });
                          return {out};
                        }});
  references.push_back({&expand_as_op, [](const Application& a) -> Arrays {
                          Array out(a[1].shape);
                          std::int64_t next = 0;
                          for_each_index(out.shape, [&](const Index& index) {
                            out[next++] = a[0][position(a[0].shape, index)];
                          });
                          return {out};
                        }});
  references.push_back({&broadcast_like_op, [](const Application& a) -> Arrays {
                          const auto& reduction = a.attribute<Reduction>();
                          Array out(a[1].shape);
                          std::int64_t next = 0;
                          for_each_index(out.shape, [&](const Index& index) {
                            const Index from = remaining(index, reduction, 0);
                            out[next++] = a[0][position(a[0].shape, from)] /
                                          (reduction.mean ? count(out.shape, reduction) : 1);
                          });
                          return {out};
                        }});
}

}  // namespace ebb::tests
