// Parameters in f64, and setting them to the original's values.
#pragma once
#include <initializer_list>
#include <utility>

#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {

inline Parameters f64() { return Parameters(Device::cpu(), Seed{1}, DType::f64); }

inline void set(const Parameters& parameters,
                std::initializer_list<std::pair<const char*, Tensor>> values) {
  for (const auto& [name, value] : values) assign(parameters[name], value.detach());
}

// What a layer of f64 with the original's parameters gives for x.
template <class Layer, class... Options>
Tensor layer_of(const Tensor& x, std::initializer_list<std::pair<const char*, Tensor>> values,
                const Options&... options) {
  const Parameters params = f64();
  const Layer layer(params, options...);
  set(params, values);
  return layer(x);
}

}  // namespace ebb::tests::parity
