#include "ebb/core/shape.h"

#include "ebb/core/error.h"

namespace ebb {

Shape::Shape(std::span<const std::int64_t> dims) {
  for (const std::int64_t size : dims) push_back(size);
}

void Shape::push_back(std::int64_t size) {
  if (rank_ == kMaxRank)
    throw ShapeError("a tensor has at most " + std::to_string(kMaxRank) + " dimensions");
  if (size < kOpen) throw ShapeError("a dimension cannot be " + std::to_string(size));
  dims_[static_cast<std::size_t>(rank_++)] = size;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) {
    if (i) text += ", ";
    const std::int64_t size = (*this)[i];
    text += size == kOpen ? std::string("?") : std::to_string(size);
  }
  return text + "]";
}

}  // namespace ebb
