// Forecasts of a series without a model of ebb's, to judge one by.
#pragma once
#include <cstddef>
#include <optional>
#include <span>

namespace examples {

// The root mean square error of one-step forecasts of series[boundary ...], each from all the
// values before it, by a constant and `order` coefficients fitted to series[order ... boundary) by
// least squares. Nothing where the fit has no unique solution.
std::optional<double> autoregression_error(std::span<const double> series, std::size_t boundary,
                                           std::size_t order);

// The same of the forecast that nothing changes.
double repeat_error(std::span<const double> series, std::size_t boundary);

}  // namespace examples
