#include "ebb/core/base/shape.h"

#include <string>

#include "ebb/core/base/error.h"

namespace ebb {
namespace {
// Names the line of the surrounding CallSiteScope; without one, the line of the dimensions.
[[noreturn]] void refuse(const std::string& text, CallSite site = {}) {
  detail::refuse<ShapeError>("shape", text, site.resolved());
}
}  // namespace

Shape::Shape(std::span<const std::int64_t> dims, CallSite site) {
  for (const std::int64_t size : dims) append(size, site);
}

void Shape::push_back(std::int64_t size) { append(size, {}); }

void Shape::append(std::int64_t size, CallSite site) {
  if (rank_ == kMaxRank)
    refuse("a tensor has at most " + std::to_string(kMaxRank) + " dimensions", site);
  if (size < kOpen) refuse("a dimension cannot be " + std::to_string(size), site);
  dims_[static_cast<std::size_t>(rank_++)] = size;
}

void Shape::throw_no_size(detail::AxisAt at) const {
  const std::string axis = std::to_string(at.axis);
  if (at.axis < -rank_ || at.axis >= rank_)
    refuse("there is no axis " + axis + " in " + to_string(), at.site);
  refuse("the size of axis " + axis + " of " + to_string() +
             " is not known before a session runs; size(x, axis) is a tensor of it",
         at.site);
}

void Shape::throw_no_elements() const {
  if (is_countable())
    refuse("the number of elements of " + to_string() +
           " is not known before a session runs; size(x, axis) is a tensor of each size");
  refuse(detail::too_large(*this));
}

std::string detail::too_large(const Shape& shape) {
  return "the shape " + shape.to_string() + " has more elements than a tensor can have, which is " +
         std::to_string(kMaxElements);
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i) text += ", ";
    const std::int64_t size = dim(i);
    text += size == kOpen ? std::string("?") : std::to_string(size);
  }
  return text + "]";
}

std::string Spec::to_string() const { return name(dtype) + shape.to_string(); }

}  // namespace ebb
