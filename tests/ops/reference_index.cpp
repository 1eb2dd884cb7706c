#include "ebb/core/kernels/index.h"

#include <limits>

#include "ebb/core/ops/index.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

// body(place in x, place in the parts) for each element of the parts that an index in range
// chooses.
template <class Body>
void for_each_chosen(const Shape& x, const Array& indices, const Shape& parts, std::int64_t along,
                     const Body& body) {
  const auto axis = static_cast<std::size_t>(along);
  const auto axes = static_cast<std::size_t>(indices.shape.rank());
  for_each_index(parts, [&](const Index& part) {
    const Index chosen(part.begin() + along, part.begin() + along + indices.shape.rank());
    const auto index = static_cast<std::int64_t>(indices[position(indices.shape, chosen)]);
    if (index < 0 || index >= x[static_cast<int>(along)]) return;
    Index from(part.begin(), part.begin() + along);
    from.push_back(index);
    from.insert(from.end(), part.begin() + static_cast<std::ptrdiff_t>(axis + axes), part.end());
    body(position(x, from), position(parts, part));
  });
}

// body(place in x, place in the indices) for each index that is in range.
template <class Body>
void for_each_gathered(const Shape& x, const Array& indices, std::int64_t along, const Body& body) {
  std::int64_t next = 0;
  for_each_index(indices.shape, [&](const Index& index) {
    Index from = index;
    const auto at = static_cast<std::int64_t>(indices[next++]);
    from[static_cast<std::size_t>(along)] = at;
    if (at >= 0 && at < x[static_cast<int>(along)]) body(position(x, from), next - 1);
  });
}

}  // namespace

void add_index_references(std::vector<Reference>& references) {
  references.push_back({&index_select_op, [](const Application& a) -> Arrays {
                          Array out(a.outputs[0].shape);
                          for_each_chosen(
                              a[0].shape, a[1], out.shape, a.attribute<IndexAttributes>().axis,
                              [&](std::int64_t x, std::int64_t part) { out[part] = a[0][x]; });
                          return {out};
                        }});
  references.push_back({&index_select_backward_op, [](const Application& a) -> Arrays {
                          Array out(a[2].shape);
                          for_each_chosen(
                              out.shape, a[1], a[0].shape, a.attribute<IndexAttributes>().axis,
                              [&](std::int64_t x, std::int64_t part) { out[x] += a[0][part]; });
                          return {out};
                        }});
  references.push_back({&gather_op, [](const Application& a) -> Arrays {
                          Array out(a[1].shape);
                          if (is_floating(a.outputs[0].dtype))
                            for (double& value : out.values)
                              value = std::numeric_limits<double>::quiet_NaN();
                          for_each_gathered(
                              a[0].shape, a[1], a.attribute<IndexAttributes>().axis,
                              [&](std::int64_t x, std::int64_t to) { out[to] = a[0][x]; });
                          return {out};
                        }});
  references.push_back({&gather_backward_op, [](const Application& a) -> Arrays {
                          Array out(a[2].shape);
                          for_each_gathered(
                              out.shape, a[1], a.attribute<IndexAttributes>().axis,
                              [&](std::int64_t x, std::int64_t from) { out[x] += a[0][from]; });
                          return {out};
                        }});
  references.push_back({&one_hot_op, [](const Application& a) -> Arrays {
                          Array out(a.outputs[0].shape);
                          const std::int64_t classes = out.shape[-1];
                          for (std::int64_t i = 0; i < out.elements(); ++i)
                            out[i] = a[0][i / classes] == static_cast<double>(i % classes) ? 1 : 0;
                          return {out};
                        }});
}

}  // namespace ebb::tests
