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

}  // namespace ebb::tests::parity
