#pragma once
#include <concepts>

namespace ebb::detail {

// A number in a call that takes options as well. Braces do not match, since they mean options, nor
// does bool.
template <class T>
concept PlainNumber = std::floating_point<T> ||(std::integral<T> && !std::same_as<T, bool>);

}  // namespace ebb::detail
