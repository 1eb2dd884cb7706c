#pragma once
#include <cmath>
#include <optional>
#include <string>

#include "ebb/core/base/dtype.h"
#include "ebb/core/base/error.h"

namespace ebb::optim {

// Checks of options. Throw Error "[adam] beta1 = 1.5 is outside [0, 1) (train.cpp:7)", with the
// line of the CallSiteScope they are called in.
[[noreturn]] inline void reject(const char* what, const char* option, double value,
                                const char* why) {
  ebb::detail::refuse(what, std::string(option) + " = " + std::to_string(value) + " is " + why);
}
inline void require_fraction(const char* what, const char* option, double value) {
  if (!(value >= 0 && value < 1)) reject(what, option, value, "outside [0, 1)");
}
inline void require_not_negative(const char* what, const char* option, double value) {
  if (!(std::isfinite(value) && value >= 0)) reject(what, option, value, "not finite and >= 0");
}

inline void require_state_dtype(const char* what, const char* option, std::optional<DType> dtype) {
  if (dtype && *dtype != DType::f32 && *dtype != DType::f64)
    ebb::detail::refuse(
        what, std::string(option) + " = " + name(*dtype) + " is not f32 or f64" +
                  (is_half(*dtype) ? ": what is added little by little would be lost" : ""));
}

}  // namespace ebb::optim
