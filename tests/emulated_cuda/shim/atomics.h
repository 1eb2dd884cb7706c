// Atomics: plain, since one thread runs all fibers and none is interrupted.
#pragma once
#include <type_traits>

namespace ebb::emulated {
template <class T, class Function>
T exchange_with(T* at, const Function& function) {
  const T old = *at;
  *at = function(old);
  return old;
}
}  // namespace ebb::emulated

template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  return ebb::emulated::exchange_with(at, [=](T old) { return static_cast<T>(old + value); });
}
template <class T>
T atomicSub(T* at, std::type_identity_t<T> value) {
  return ebb::emulated::exchange_with(at, [=](T old) { return static_cast<T>(old - value); });
}
template <class T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  return ebb::emulated::exchange_with(at, [=](T old) { return old < value ? value : old; });
}
template <class T>
T atomicMin(T* at, std::type_identity_t<T> value) {
  return ebb::emulated::exchange_with(at, [=](T old) { return value < old ? value : old; });
}
template <class T>
T atomicExch(T* at, std::type_identity_t<T> value) {
  return ebb::emulated::exchange_with(at, [=](T) { return value; });
}
template <class T>
T atomicOr(T* at, std::type_identity_t<T> value) {
  return ebb::emulated::exchange_with(at, [=](T old) { return static_cast<T>(old | value); });
}
template <class T>
T atomicAnd(T* at, std::type_identity_t<T> value) {
  return ebb::emulated::exchange_with(at, [=](T old) { return static_cast<T>(old & value); });
}
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return ebb::emulated::exchange_with(at, [=](T old) { return old == expected ? value : old; });
}
// Counts up to a limit, then begins at 0 again.
inline unsigned atomicInc(unsigned* at, unsigned limit) {
  return ebb::emulated::exchange_with(at, [=](unsigned old) { return old >= limit ? 0 : old + 1; });
}
