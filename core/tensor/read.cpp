// Reading a tensor's values on the host, in the type that the program asks for.
#include <cstring>
#include <utility>

#include "ebb/core/base/error.h"
#include "ebb/core/device/simulation.h"
#include "ebb/core/kernels/convert.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/core/tensor/trace.h"

namespace ebb {

using detail::HostType;
using detail::refuse;
using detail::TensorImpl;

namespace {

std::string name_of(HostType type) {
  switch (type.kind) {
    case HostType::floating:
      return type.bytes == 4 ? "float" : type.bytes == 8 ? "double" : "long double";
    case HostType::f16:
      return "Float16";
    case HostType::bf16:
      return "BFloat16";
    case HostType::boolean:
      return "bool";
    default:
      return (type.kind == HostType::natural ? "std::uint" : "std::int") +
             std::to_string(8 * type.bytes) + "_t";
  }
}

// Calls body with a value of a host type, up to its name: char is std::int8_t or std::uint8_t.
template <class Body>
void with_host(HostType type, const Body& body) {
  const auto by_size = [&](auto one, auto two, auto four, auto eight) {
    if (type.bytes == 1) return body(one);
    if (type.bytes == 2) return body(two);
    if (type.bytes == 4) return body(four);
    body(eight);
  };
  switch (type.kind) {
    case HostType::floating:
      if (type.bytes == 4) return body(float{});
      if (type.bytes == 8) return body(double{});
      return body(0.0L);
    case HostType::f16:
      return body(Float16{});
    case HostType::bf16:
      return body(BFloat16{});
    case HostType::integer:
      return by_size(std::int8_t{}, std::int16_t{}, std::int32_t{}, std::int64_t{});
    case HostType::natural:
      return by_size(std::uint8_t{}, std::uint16_t{}, std::uint32_t{}, std::uint64_t{});
    case HostType::boolean:
      return body(bool{});
  }
}

// Whether From converts to To, up to rounding and integers out of range.
template <class To, class From>
inline constexpr bool kConverts = std::is_same_v<From, bool> || !std::is_integral_v<To> ||
                                  (std::is_integral_v<From> && !std::is_same_v<To, bool>);

void require_convertible(const Spec& spec, HostType type, const char* what, CallSite site) {
  bool converts = false;
  with_type_of(spec.dtype, [&](auto from) {
    with_host(type, [&](auto to) { converts = kConverts<decltype(to), decltype(from)>; });
  });
  if (converts) return;
  const std::string way =
      type.kind == HostType::boolean ? "x != 0 is of bool" : std::string(what) + "<float> reads it";
  refuse(what, "gives no " + name_of(type) + " of a tensor of " + spec.to_string() + "; " + way,
         site);
}

// Converts one value between memory of any alignment.
template <class To, class From>
void convert_one(const std::byte* from, std::byte* to, const Spec& spec, const char* what,
                 CallSite site) {
  From value;
  std::memcpy(&value, from, sizeof(value));
  if constexpr (std::is_integral_v<To> && !std::is_same_v<From, bool>)
    if (!std::in_range<To>(value))
      refuse(what,
             std::to_string(value) + " is out of range of " + name_of(detail::host_type<To>()) +
                 "; the tensor is " + spec.to_string(),
             site);
  const To converted = convert<To>(value);
  std::memcpy(to, &converted, sizeof(converted));
}

// Reads `count` values from `first` on. Values to convert are copied to the host first.
void read(const TensorImpl& impl, std::size_t first, std::size_t count, void* to, HostType type,
          const char* what, CallSite site) {
  const std::size_t size = size_of(impl.spec.dtype);
  if (count == 0) return;
  with_type_of(impl.spec.dtype, [&](auto stored) {
    using From = decltype(stored);
    if (detail::host_type<From>() == type)
      return detail::copy_elements(impl, first, count, to, what, site);
    const auto values = std::make_unique<std::byte[]>(count * size);
    detail::copy_elements(impl, first, count, values.get(), what, site);
    with_host(type, [&](auto wanted) {
      using To = decltype(wanted);
      if constexpr (kConverts<To, From>)
        for (std::size_t i = 0; i < count; ++i)
          convert_one<To, From>(values.get() + i * size,
                                static_cast<std::byte*>(to) + i * sizeof(To), impl.spec, what,
                                site);
    });
  });
}

}  // namespace

// The values that a prediction gives for reads of a simulated tensor.
static std::shared_ptr<detail::Simulation> given_values(const TensorImpl& impl, const char* what,
                                                        CallSite site) {
  const Device& device = impl.storage->device();
  auto simulation = device.runtime().simulation();
  if (simulation && simulation->gives_values()) return simulation;
  refuse<SimulatedRead>(what,
                        "a tensor of " + impl.spec.to_string() + " on " + device.name() +
                            " has no values: the device is simulated" + detail::kGiveValues,
                        site);
}

void detail::require_readable(const TensorImpl& impl, const char* what, CallSite site) {
  if (impl.storage->device().is_simulated()) given_values(impl, what, site);
}

void detail::copy_elements(const TensorImpl& impl, std::size_t first, std::size_t count, void* to,
                           const char* what, CallSite site) {
  if (impl.storage->device().is_simulated()) {
    static_cast<void>(impl.storage->data());  // gathers what the ranks have shares of
    return given_values(impl, what, site)
        ->read(what, impl.spec, static_cast<std::int64_t>(first), count, to, site);
  }
  const std::size_t size = size_of(impl.spec.dtype);
  impl.storage->copy_out(impl.offset + first * size, to, count * size);
}

const TensorImpl& Tensor::readable(HostType type, const char* what, CallSite site) const {
  const TensorImpl& impl = held(what, site);
  detail::refuse_while_tracing(what, site);
  if (impl.recorder)
    refuse(what,
           "a symbolic tensor has no value before a session runs it; fetch it with Session::run",
           site);
  if (!impl.storage) refuse(what, "only the shape of this tensor is known", site);
  require_convertible(impl.spec, type, what, site);
  detail::require_readable(impl, what, site);
  detail::require_whole(*impl.storage, what, site);
  return impl;
}

void Tensor::read_element(void* value, HostType type, std::initializer_list<std::int64_t> index,
                          CallSite site) const {
  const TensorImpl& impl = readable(type, "item", site);
  const Shape& shape = impl.spec.shape;
  std::int64_t flat = 0;
  if (index.size() == 0) {
    if (shape.elements() != 1)
      refuse<ShapeError>(
          "item", "without an index takes a one-element tensor, not " + impl.spec.to_string(),
          site);
  } else {
    if (static_cast<int>(index.size()) != shape.rank())
      refuse<ShapeError>(
          "item",
          std::to_string(index.size()) + " indices for a tensor of " + impl.spec.to_string(), site);
    int axis = 0;
    for (const std::int64_t i : index) {
      if (i < 0 || i >= shape[axis])
        refuse<ShapeError>("item",
                           "index " + std::to_string(i) + " is outside axis " +
                               std::to_string(axis) + " of " + impl.spec.to_string(),
                           site);
      flat = flat * shape[axis++] + i;
    }
  }
  read(impl, static_cast<std::size_t>(flat), 1, value, type, "item", site);
}

std::size_t Tensor::count_to_read(HostType type, CallSite site) const {
  return static_cast<std::size_t>(readable(type, "to_vector", site).spec.shape.elements());
}

void Tensor::read_all(void* values, std::size_t count, HostType type, CallSite site) const {
  read(*impl_, 0, count, values, type, "to_vector", site);
}

}  // namespace ebb
