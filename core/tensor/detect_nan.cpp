#include "ebb/core/tensor/detect_nan.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "ebb/core/device/runtime.h"
#include "ebb/core/device/simulation.h"
#include "ebb/core/kernels/convert.h"

namespace ebb::detail {

namespace {

constexpr std::int64_t kPiece = std::int64_t{1} << 18;  // elements on the host at once

std::int64_t first_nan(const std::byte* values, DType dtype, std::int64_t count,
                       NanCheck check) noexcept {
  return with_type_of(dtype, [&](auto type) -> std::int64_t {
    using T = decltype(type);
    if constexpr (std::is_integral_v<T>) {
      return count;
    } else {
      const T* const first = reinterpret_cast<const T*>(values);
      const auto is_refused = [check](T value) {
        const double number = convert<double>(value);
        return check == NanCheck::nan ? std::isnan(number) : !std::isfinite(number);
      };
      return std::find_if(first, first + count, is_refused) - first;
    }
  });
}

std::optional<std::int64_t> first_nan(const Buffer& buffer, NanCheck check, Runtime& runtime,
                                      Stream* stream, CallSite site) {
  const auto [dtype, shape] = buffer.spec;
  if (!buffer.data || !is_floating(dtype)) return std::nullopt;
  const std::int64_t elements = shape.elements();
  if (const auto simulation = runtime.simulation()) {
    std::uint64_t value = 0;
    simulation->read("DetectNan", buffer.spec, 0, 1, &value, site);
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    return first_nan(bytes, dtype, 1, check) == 0 ? std::optional<std::int64_t>(0) : std::nullopt;
  }
  for (std::int64_t begin = 0; begin < elements; begin += kPiece) {
    const std::int64_t count = std::min(kPiece, elements - begin);
    const std::size_t size = size_of(dtype);
    const HostView view(
        runtime, stream,
        static_cast<const std::byte*>(buffer.data) + static_cast<std::size_t>(begin) * size,
        static_cast<std::size_t>(count) * size);
    const std::int64_t found = first_nan(view.data(), dtype, count, check);
    if (found < count) return begin + found;
  }
  return std::nullopt;
}

// "element [2, 3] of its result f32[4, 5]".
std::string position_of(std::int64_t element, const char* of, const Spec& spec) {
  const std::string place = place_of(element, spec.shape);
  return (place.empty() ? "" : "element [" + place + "] of ") + of + " " + spec.to_string();
}

}  // namespace

std::string place_of(std::int64_t element, const Shape& shape) {
  std::string place;
  for (int axis = shape.rank(); axis-- > 0;) {
    const std::int64_t size = shape.dim(axis);
    place = std::to_string(element % size) + (place.empty() ? "" : ", ") + place;
    element /= size;
  }
  return place;
}

NanCheck nan_check_on(const Runtime& runtime) noexcept {
  const NanCheck check = tape_mode().nan_check;
  return check == NanCheck::none || runtime.has_values() ? check : NanCheck::none;
}

std::string find_nan(const KernelContext& context, NanCheck check, Runtime& runtime, Stream* stream,
                     CallSite site) {
  const std::string what = check == NanCheck::nan ? "NaN" : "not finite";
  for (const Buffer& output : context.outputs) {
    const std::optional<std::int64_t> found = first_nan(output, check, runtime, stream, site);
    if (!found) continue;
    const std::string here = position_of(*found, "its result", output.spec) + " is " + what;
    for (std::size_t i = 0; i < context.inputs.size(); ++i) {
      // An input that has been overwritten no longer has the values that the operator was given.
      const Buffer& input = context.inputs[i];
      const bool is_kept = std::none_of(context.outputs.begin(), context.outputs.end(),
                                        [&](const Buffer& o) { return o.data == input.data; });
      if (!is_kept) continue;
      if (const auto given = first_nan(input, check, runtime, stream, site))
        return here + ", as " +
               position_of(*given, ("input " + std::to_string(i)).c_str(), input.spec) +
               " is already";
    }
    return here + ", which none of its inputs is";
  }
  return {};
}

}  // namespace ebb::detail
