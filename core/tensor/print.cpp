// Printing of tensors.

#include <algorithm>
#include <cstring>
#include <ostream>
#include <string>
#include <type_traits>
#include <vector>

#include "ebb/core/base/formatted.h"
#include "ebb/core/kernels/convert.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb {
namespace {

// With more than kMostElements elements, each axis shows only kEnd at either end.
constexpr std::int64_t kMostElements = 1000, kEnd = 3;

std::string text_of(DType dtype, const std::byte* value) {
  return with_type_of(dtype, [&](auto number) -> std::string {
    using T = decltype(number);
    std::memcpy(&number, value, sizeof(T));
    if constexpr (std::is_same_v<T, bool>) return number ? "true" : "false";
    if constexpr (std::is_integral_v<T>) return std::to_string(number);
    return detail::formatted("%.4g", convert<double>(number));
  });
}

// Reads only the elements that it prints.
class Printer {
 public:
  explicit Printer(const detail::TensorImpl& impl)
      : impl_(impl), shape_(impl.spec.shape), is_short_(shape_.elements() > kMostElements) {
    if (shape_.elements() > 0) read(0, 0);
    for (const std::string& text : elements_) width_ = std::max(width_, text.size());
  }

  void print(std::ostream& out) {
    // The shape beside it tells the number of empty rows.
    if (shape_.elements() == 0) {
      out << "[]";
      return;
    }
    next_ = 0;
    print(out, 0);
  }

 private:
  // Position along an axis where the printed range stops, and where it goes on.
  std::int64_t gap_begin(int axis) const {
    return is_short_ && shape_.dim(axis) > 2 * kEnd ? kEnd : shape_.dim(axis);
  }
  std::int64_t gap_end(int axis) const {
    return gap_begin(axis) == shape_.dim(axis) ? shape_.dim(axis) : shape_.dim(axis) - kEnd;
  }

  void read_run(std::int64_t first, std::int64_t count) {
    if (count == 0) return;
    const std::size_t bytes = size_of(impl_.spec.dtype);
    std::vector<std::byte> values(static_cast<std::size_t>(count) * bytes);
    detail::copy_elements(impl_, static_cast<std::size_t>(first), static_cast<std::size_t>(count),
                          values.data(), "print", detail::entry());
    for (std::int64_t i = 0; i < count; ++i)
      elements_.push_back(
          text_of(impl_.spec.dtype, values.data() + static_cast<std::size_t>(i) * bytes));
  }
  // Reads the part of all axes from `axis` on that begins at element `first`.
  void read(int axis, std::int64_t first) {
    if (axis == shape_.rank()) return read_run(first, 1);
    const std::int64_t inner = detail::product(shape_, axis + 1, shape_.rank());
    const std::int64_t begin = gap_begin(axis), end = gap_end(axis), size = shape_.dim(axis);
    if (!is_short_ || axis + 1 == shape_.rank()) {
      read_run(first, begin * inner);
      return read_run(first + end * inner, (size - end) * inner);
    }
    for (std::int64_t i = 0; i < size; ++i) {
      if (i == begin) i = end;
      if (i < size) read(axis + 1, first + i * inner);
    }
  }

  void print(std::ostream& out, int axis) {
    if (axis == shape_.rank()) {
      const std::string& text = elements_[next_++];
      if (axis > 0) out << std::string(width_ - text.size(), ' ');
      out << text;
      return;
    }
    const bool is_last = axis + 1 == shape_.rank();
    const auto separate = [&] {
      out << ',';
      if (is_last) {
        out << ' ';
        return;
      }
      out << std::string(static_cast<std::size_t>(shape_.rank() - axis - 1), '\n')
          << std::string(static_cast<std::size_t>(axis) + 1, ' ');
    };
    out << '[';
    for (std::int64_t i = 0; i < shape_.dim(axis); ++i) {
      if (i > 0) separate();
      if (i == gap_begin(axis)) {
        out << "...";
        i = gap_end(axis);
        separate();
      }
      print(out, axis + 1);
    }
    out << ']';
  }

  const detail::TensorImpl& impl_;
  const Shape& shape_;
  const bool is_short_;
  std::vector<std::string> elements_;  // printed elements, in memory order
  std::size_t width_ = 0, next_ = 0;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, DType type) { return out << name(type); }
std::ostream& operator<<(std::ostream& out, const Spec& spec) { return out << spec.to_string(); }
std::ostream& operator<<(std::ostream& out, const Device& device) { return out << device.name(); }
std::ostream& operator<<(std::ostream& out, Float16 value) {
  return out << static_cast<float>(value);
}
std::ostream& operator<<(std::ostream& out, BFloat16 value) {
  return out << static_cast<float>(value);
}
std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << shape.to_string(); }

std::ostream& operator<<(std::ostream& out, const Tensor& x) {
  const bool has_values = x.defined() && x.impl()->storage && x.device().runtime().has_values();
  if (!has_values || detail::tape_mode().trace) return out << x.to_string();
  detail::require_whole(*x.impl()->storage, "print", detail::entry());
  Printer(*x.impl()).print(out);
  if (x.rank() > 0) out << "  " << x.to_string();
  return out;
}

}  // namespace ebb
