#pragma once
#include <algorithm>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ebb/core/base/call_site.h"
#include "ebb/core/base/dtype.h"
#include "ebb/core/base/inline_vector.h"
#include "ebb/core/base/shape.h"
#include "ebb/core/device/device.h"

namespace ebb {

struct BFloat16;
struct Float16;
class Stream;
class Tensor;
namespace detail {
struct TensorImpl;

// A C++ type in which the host reads values.
struct HostType {
  enum Kind : std::uint8_t { floating, f16, bf16, integer, natural, boolean } kind;
  std::uint8_t bytes;
  friend bool operator==(const HostType&, const HostType&) = default;
};
}  // namespace detail

using Tensors = InlineVector<Tensor, 4>;

struct BackwardOptions {
  bool retain_graph = false;  // keep the tape for another backward pass
  bool create_graph = false;  // give the results a history, for higher orders; retains as well
};

// An index with the user's source line.
struct IndexAt {
  template <std::integral T>
  IndexAt(T i, CallSite at = CallSite::here()) noexcept  // NOLINT: implicit is the point
      : index(static_cast<std::int64_t>(i)), site(at) {}
  std::int64_t index;
  CallSite site;
};

// A handle to an n-dimensional array: contiguous, row-major, typed, on one device. A tensor is
// concrete (its values exist, or on a simulated device would) or symbolic (an output of a node of a
// graph). Copying copies the handle; constness is shallow, as with shared_ptr. When the last handle
// goes, its memory is free.
class Tensor {
 public:
  // Holds nothing; defined() is false.
  Tensor() noexcept = default;
  Tensor(const Tensor&) noexcept;
  Tensor(Tensor&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
  // Rebinds a name. A function's result has no name: x[0] = y would change nothing and does not
  // compile.
  Tensor& operator=(Tensor other) & noexcept {
    std::swap(impl_, other.impl_);
    return *this;
  }
  void operator=(const Tensor&) && = delete;  // x[0] is a copy: assign_slice(x, 0, unsqueeze(y, 0))
  ~Tensor() {
    if (impl_) release();
  }

  // Values in braces: from({1.f, 2.f}) is f32[2], from({1, 2, 3, 4}, {2, 2}) i32[2, 2]. One
  // dimension of `shape` may be -1: it follows from the number of values. Throws ShapeError for
  // values that do not fill the shape.
  template <class T>
  static Tensor from(std::initializer_list<T> values, Shape shape = {-1},
                     const Device& device = Device::cpu(), CallSite site = CallSite::here());
  // Values in nested braces: from({{1, 2}, {3, 4}}) is i32[2, 2]. On the CPU. Throws ShapeError for
  // rows of different lengths.
  template <class T>
  static Tensor from(std::initializer_list<std::initializer_list<T>> rows,
                     CallSite site = CallSite::here());
  template <class T>
  static Tensor from(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes,
                     CallSite site = CallSite::here());
  // Values of a contiguous range (vector, array, span), copied. One dimension of `shape` may be -1;
  // without a shape there is one axis. Integers without a dtype become the next larger one:
  // std::size_t i64, short i32. Throws ShapeError for values that do not fill the shape, Error for
  // an integer beyond i64.
  template <std::ranges::contiguous_range Range>
  static Tensor from(const Range& values, Shape shape = {-1}, const Device& device = Device::cpu(),
                     CallSite site = CallSite::here());
  // A template, so that braces of numbers do not match.
  template <std::same_as<bool> T>
  static Tensor from(const std::vector<T>& values, Shape shape = {-1},
                     const Device& device = Device::cpu(), CallSite site = CallSite::here()) {
    return from_flags(values, shape, device, site);
  }
  // A number, without axes: from(3.f) is f32[].
  template <class T>
  requires std::is_arithmetic_v<T>
  static Tensor from(T value, const Device& device = Device::cpu(),
                     CallSite site = CallSite::here()) {
    return from(std::span(&value, 1), Shape(), device, site);
  }
  // `shape` filled with `value`, converted to dtype.
  static Tensor full(Shape shape, double value, DType dtype = DType::f32,
                     const Device& device = Device::cpu(), CallSite site = CallSite::here());
  static Tensor zeros(Shape shape, DType dtype = DType::f32, const Device& device = Device::cpu(),
                      CallSite site = CallSite::here());

  void begin() const = delete;  // no range: x[i] for i below x.size(0), or chunk(x, parts)
  void end() const = delete;

  bool defined() const noexcept { return impl_ != nullptr; }
  bool is_symbolic() const noexcept;
  // These throw Error if the tensor holds nothing, as do the functions below that read values.
  // Dimensions of a symbolic tensor may be open. The size of an open one, elements() and bytes()
  // throw ShapeError then; size(x, axis) gives it as a tensor.
  const Shape& shape(CallSite site = CallSite::caller()) const;
  DType dtype(CallSite site = CallSite::caller()) const;
  int rank(CallSite site = CallSite::caller()) const { return shape(site).rank(); }
  std::int64_t size(int axis, CallSite site = CallSite::caller()) const;
  std::int64_t elements(CallSite site = CallSite::caller()) const;
  std::size_t bytes(CallSite site = CallSite::caller()) const;
  // Throws Error for a symbolic tensor, which has no device before a session runs it.
  Device device(CallSite site = CallSite::caller()) const;
  // "f32[2, 3] on cpu".
  std::string to_string() const;

  // select(x, 0, i): the part at i of the leading axis (negative: from the end), without that axis;
  // a copy, in both modes. Throws ShapeError.
  Tensor operator[](IndexAt i) const;

  // One element, or the only one, as any arithmetic type, Float16 or BFloat16. A floating T rounds
  // floating values and integers; an integral T takes integers in its range; bool becomes 0 or 1 of
  // any T. Throws ShapeError for an index out of range or of another rank. Throws Error for
  // floating values as an integral T, anything but bool as bool, an integer out of range, and a
  // symbolic tensor; SimulatedRead for a simulated one.
  template <class T>
  T item(std::initializer_list<std::int64_t> index = {}, CallSite site = CallSite::here()) const;
  // All elements, row-major, on the host. Throws as item does.
  template <class T>
  std::vector<T> to_vector(CallSite site = CallSite::here()) const;

  // A copy on `device`, or this tensor if it is there already. A simulated device gets the shape
  // only. The gradient comes back to this tensor's device. Concrete tensors only: a graph's are
  // wherever a session runs them.
  Tensor to(const Device& device, CallSite site = CallSite::here()) const&;
  Tensor to(const Device& device, CallSite site = CallSite::here()) &&;
  // copy(x): the same values in memory of its own, in both modes; the gradient passes.
  Tensor clone(CallSite site = CallSite::here()) const;

  // A leaf with this tensor's memory, whose gradient backward() accumulates. Concrete tensors only.
  Tensor with_grad(CallSite site = CallSite::here()) const;
  // A tensor with the same memory and no history: gradients stop here. In both modes.
  Tensor detach(CallSite site = CallSite::here()) const&;
  Tensor detach(CallSite site = CallSite::here()) &&;
  bool requires_grad() const noexcept;
  // The gradient accumulated in a leaf; not defined() before the first backward().
  const Tensor& grad() const;
  void zero_grad() const;
  // Adds d(this)/d(leaf) to the .grad() of every leaf below this one-element tensor, and frees the
  // tape as it goes (unless retained). Throws Error for a symbolic tensor (use gradients()), one
  // without history, or one whose tape was freed.
  void backward(BackwardOptions options = {}, CallSite site = CallSite::here()) const;

  // Implementation's view of the handle.
  explicit Tensor(detail::TensorImpl* owned) noexcept : impl_(owned) {}
  detail::TensorImpl* impl() const noexcept { return impl_; }

 private:
  // The implementation, and its spec with all sizes known. Throw Error in the name of `what` if the
  // tensor holds nothing, ShapeError if a size is open.
  const detail::TensorImpl& held(const char* what, CallSite site) const;
  const Spec& known(const char* what, CallSite site) const;
  void release() noexcept;
  // Planes, or with a rank of 2 the rows of a single one.
  template <class T>
  static Tensor from_planes(
      std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes, int rank,
      CallSite site);
  static Tensor from_flags(const std::vector<bool>& values, const Shape& shape,
                           const Device& device, CallSite site);
  static Tensor copy_in(const void* values, DType dtype, std::size_t count, const Shape& shape,
                        const Device& device, CallSite site);
  // The implementation, if it has values that convert to this type. Throws as item() does.
  const detail::TensorImpl& readable(detail::HostType type, const char* what, CallSite site) const;
  void read_element(void* value, detail::HostType type, std::initializer_list<std::int64_t> index,
                    CallSite site) const;
  // First call of to_vector(): the number of elements, before memory for them is allocated.
  // read_all() then reads them.
  std::size_t count_to_read(detail::HostType type, CallSite site) const;
  void read_all(void* values, std::size_t count, detail::HostType type, CallSite site) const;

  detail::TensorImpl* impl_ = nullptr;
};

// Prints values in brackets, row by row, floating ones to 4 digits, followed by dtype, shape and
// device; a scalar as its number. With more than 1000 elements, only the first 3 and last 3 of each
// axis are read and printed. Without values (symbolic, simulated, nothing): to_string().
std::ostream& operator<<(std::ostream& out, const Tensor& x);

// "f32", "f32[2, 3]", "cuda:1"; numbers of 16 bits print as floats.
std::ostream& operator<<(std::ostream& out, DType type);
std::ostream& operator<<(std::ostream& out, const Spec& spec);
std::ostream& operator<<(std::ostream& out, const Device& device);
std::ostream& operator<<(std::ostream& out, Float16 value);
std::ostream& operator<<(std::ostream& out, BFloat16 value);

// d(sum of outputs)/d(input) for each input, in both modes and of any order: on concrete tensors
// the gradients are computed, on symbolic ones nodes are added. An input that no output depends on
// gets zeros. Leaves .grad() alone. Throws Error if an output is not a one-element tensor, and
// NotDifferentiable if an operator on the way has no derivative.
Tensors gradients(const Tensor& output, const Tensors& inputs, BackwardOptions options = {},
                  CallSite site = CallSite::here());
// The gradient of one input: d(sum of output)/d(input). Otherwise as gradients().
Tensor gradient(const Tensor& output, const Tensor& input, BackwardOptions options = {},
                CallSite site = CallSite::here());
// Gradient of one input, as a list of one.
Tensors gradients(const Tensor& output, const std::same_as<Tensor> auto& input,
                  BackwardOptions options = {}, CallSite site = CallSite::here()) {
  return gradients(output, Tensors{input}, options, site);
}

// --- implementation -----------------------------------------------------------------------------

namespace detail {
[[noreturn]] void throw_ragged(CallSite site);
[[noreturn]] void throw_beyond_i64(CallSite site);

template <class T>
inline constexpr bool kIsCharacter =
    std::is_same_v<T, char> || std::is_same_v<T, wchar_t> || std::is_same_v<T, char8_t> ||
    std::is_same_v<T, char16_t> || std::is_same_v<T, char32_t>;

// The type in which a tensor stores values of type T.
template <class T>
constexpr auto stored_as() {
  if constexpr (requires { DTypeOf<T>::value; }) {
    return std::type_identity<T>();
  } else {
    static_assert(
        std::is_integral_v<T> && !kIsCharacter<T>,
        "a tensor is made from float, double, ebb::Float16, ebb::BFloat16, bool or integers; "
        "convert the values to one of these first (texts have codes: load_csv)");
    constexpr bool fits = sizeof(T) < 4 || (sizeof(T) == 4 && std::is_signed_v<T>);
    return std::type_identity<std::conditional_t<fits, std::int32_t, std::int64_t>>();
  }
}
template <class T>
using StoredAs = typename decltype(stored_as<T>())::type;
}  // namespace detail

template <class T>
Tensor Tensor::from(std::initializer_list<T> values, Shape shape, const Device& device,
                    CallSite site) {
  return from(std::span(values.begin(), values.size()), shape, device, site);
}

template <class T>
Tensor Tensor::from(std::initializer_list<std::initializer_list<T>> rows, CallSite site) {
  return from_planes<T>({rows}, 2, site);
}

template <class T>
Tensor Tensor::from(std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes,
                    CallSite site) {
  return from_planes<T>(planes, 3, site);
}

template <class T>
Tensor Tensor::from_planes(
    std::initializer_list<std::initializer_list<std::initializer_list<T>>> planes, int rank,
    CallSite site) {
  const std::size_t rows = planes.size() ? planes.begin()->size() : 0;
  const std::size_t columns = rows ? planes.begin()->begin()->size() : 0;
  auto flat = std::make_unique<T[]>(planes.size() * rows * columns);
  T* out = flat.get();
  for (const auto& plane : planes) {
    if (plane.size() != rows) detail::throw_ragged(site);
    for (const auto& row : plane) {
      if (row.size() != columns) detail::throw_ragged(site);
      out = std::copy(row.begin(), row.end(), out);
    }
  }
  const Shape sizes = {static_cast<std::int64_t>(planes.size()), static_cast<std::int64_t>(rows),
                       static_cast<std::int64_t>(columns)};
  return from(std::span(flat.get(), planes.size() * rows * columns),
              Shape(sizes.dims().last(static_cast<std::size_t>(rank))), Device::cpu(), site);
}

template <std::ranges::contiguous_range Range>
Tensor Tensor::from(const Range& values, Shape shape, const Device& device, CallSite site) {
  using T = std::remove_cv_t<std::ranges::range_value_t<Range>>;
  using Stored = detail::StoredAs<T>;
  const auto* const from = std::ranges::data(values);
  const auto count = static_cast<std::size_t>(std::ranges::size(values));
  if constexpr (std::is_same_v<T, Stored>) {
    return copy_in(from, dtype_of<T>, count, shape, device, site);
  } else {
    auto stored = std::make_unique<Stored[]>(count);
    for (std::size_t i = 0; i < count; ++i) {
      if (!std::in_range<Stored>(from[i])) detail::throw_beyond_i64(site);
      stored[i] = static_cast<Stored>(from[i]);
    }
    return copy_in(stored.get(), dtype_of<Stored>, count, shape, device, site);
  }
}

namespace detail {
template <class T>
constexpr HostType host_type() {
  constexpr bool is_f16 = std::is_same_v<T, Float16>, is_bf16 = std::is_same_v<T, BFloat16>;
  static_assert(std::is_arithmetic_v<T> || is_f16 || is_bf16,
                "values are read as an arithmetic type, ebb::Float16 or ebb::BFloat16");
  return {is_f16                        ? HostType::f16
          : is_bf16                     ? HostType::bf16
          : std::is_floating_point_v<T> ? HostType::floating
          : std::is_same_v<T, bool>     ? HostType::boolean
          : std::is_signed_v<T>         ? HostType::integer
                                        : HostType::natural,
          sizeof(T)};
}
}  // namespace detail

template <class T>
T Tensor::item(std::initializer_list<std::int64_t> index, CallSite site) const {
  T value;
  read_element(&value, detail::host_type<T>(), index, site);
  return value;
}

template <class T>
std::vector<T> Tensor::to_vector(CallSite site) const {
  const std::size_t count = count_to_read(detail::host_type<T>(), site);
  if constexpr (std::is_same_v<T, bool>) {
    const auto values = std::make_unique<bool[]>(count);
    read_all(values.get(), count, detail::host_type<T>(), site);
    return std::vector<T>(values.get(), values.get() + count);
  } else {
    std::vector<T> values(count);
    read_all(values.data(), count, detail::host_type<T>(), site);
    return values;
  }
}

}  // namespace ebb
