#include "ebb/examples/common/autoregression.h"

#include <cmath>
#include <vector>

namespace examples {

namespace {

using Vector = std::vector<double>;

// Solves a x = b for symmetric positive definite a (row-major, n x n) by Cholesky's factors. False
// where a is not.
bool solve(Vector a, Vector& b) {
  const std::size_t n = b.size();
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = j; i < n; ++i) {
      double sum = a[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= a[i * n + k] * a[j * n + k];
      if (i != j)
        a[i * n + j] = sum / a[j * n + j];
      else if (sum > 1e-12 * a[j * n + j])
        a[j * n + j] = std::sqrt(sum);
      else
        return false;
    }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= a[i * n + k] * b[k];
    b[i] /= a[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= a[k * n + i] * b[k];
    b[i] /= a[i * n + i];
  }
  return true;
}

// The constant, then the values before `target`, latest first.
Vector row(std::span<const double> series, std::size_t target, std::size_t order) {
  Vector row(order + 1, 1.0);
  for (std::size_t lag = 1; lag <= order; ++lag) row[lag] = series[target - lag];
  return row;
}

}  // namespace

std::optional<double> autoregression_error(std::span<const double> series, std::size_t boundary,
                                           std::size_t order) {
  const std::size_t n = order + 1;
  if (boundary <= order + n || boundary >= series.size()) return {};
  Vector products(n * n, 0.0), coefficients(n, 0.0);
  for (std::size_t target = order; target < boundary; ++target) {
    const Vector x = row(series, target, order);
    for (std::size_t i = 0; i < n; ++i) {
      coefficients[i] += x[i] * series[target];
      for (std::size_t j = 0; j < n; ++j) products[i * n + j] += x[i] * x[j];
    }
  }
  if (!solve(std::move(products), coefficients)) return {};

  double sum = 0;
  for (std::size_t target = boundary; target < series.size(); ++target) {
    const Vector x = row(series, target, order);
    double error = -series[target];
    for (std::size_t i = 0; i < n; ++i) error += coefficients[i] * x[i];
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(series.size() - boundary));
}

double repeat_error(std::span<const double> series, std::size_t boundary) {
  double sum = 0;
  for (std::size_t target = boundary; target < series.size(); ++target) {
    const double error = series[target] - series[target - 1];
    sum += error * error;
  }
  return std::sqrt(sum / static_cast<double>(series.size() - boundary));
}

}  // namespace examples
