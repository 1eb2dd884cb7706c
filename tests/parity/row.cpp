#include "ebb/tests/parity/row.h"

#include <cmath>
#include <list>
#include <sstream>

#include "ebb/tests/golden/golden.h"

namespace ebb::tests::parity {
namespace {

struct Stored {
  explicit Stored(const std::string& name) : values(name), file(values.path()) {}
  bool has(const std::string& name) const { return file.find(name) != nullptr; }
  const Golden values;
  const safetensors::File file;
};

const std::list<Stored>& stored_files() {
  static const std::list<Stored> all = [] {
    std::list<Stored> made;
    for (const std::string& name : files()) made.emplace_back(name);
    return made;
  }();
  return all;
}

// Sums cos(i) y[i] over the floating outputs, on the device of y.
Tensor weighted_sum(const Tensors& outputs) {
  Tensor total;
  for (const Tensor& y : outputs) {
    if (!is_floating(y.dtype())) continue;
    std::vector<double> weights(static_cast<std::size_t>(y.elements()));
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] = std::cos(static_cast<double>(i));
    const Tensor part = sum(y * cast(Tensor::from(weights, y.shape()), y.dtype()));
    total = total.defined() ? total + part : part;
  }
  return total;
}

std::string numbered(const char* letter, std::size_t i) { return letter + std::to_string(i); }

}  // namespace

const std::vector<std::string>& files() {
  static const std::vector<std::string> names = {"parity_torch", "parity_tensorflow"};
  return names;
}

std::vector<Registered>& registered() {
  static std::vector<Registered> all;
  return all;
}

std::vector<double> numbers(const Tensor& x) { return x.to_vector<double>(); }

std::string difference_of_values(const std::vector<double>& got, const std::vector<double>& wanted,
                                 double tolerance) {
  if (got.size() != wanted.size()) return "another number of elements";
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double a = got[i], b = wanted[i];
    if (std::isnan(a) && std::isnan(b)) continue;
    if (a == b || std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b))) continue;
    std::ostringstream text;
    text.precision(17);
    text << "element " << i << " is " << a << ", the original's is " << b;
    return text.str();
  }
  return "";
}

std::string difference(const Tensor& got, const Tensor& wanted, double tolerance) {
  if (got.dtype() != wanted.dtype() || !(got.shape() == wanted.shape()))
    return got.to_string() + ", the original has " + wanted.to_string();
  if (wanted.dtype() == DType::f32) tolerance = std::max(tolerance, 1e-5);
  if (wanted.dtype() == DType::f16) tolerance = std::max(tolerance, 1e-3);
  return difference_of_values(numbers(got), numbers(wanted), tolerance);
}

bool Row::stored(const std::string& what) const {
  for (const Stored& file : stored_files())
    if (file.has(name_ + "/" + what)) return true;
  return false;
}

Tensor Row::operator[](const std::string& what) const {
  const std::string name = name_ + "/" + what;
  for (const Stored& file : stored_files())
    if (file.has(name)) return file.values[name];
  throw Error("no golden file has " + name);
}

void Row::holds(Function function, double tolerance) const {
  int files = 0;
  for (const Stored& file : stored_files()) {
    const auto name = [&](const char* letter, std::size_t i) {
      return name_ + "/" + numbered(letter, i);
    };
    if (!file.has(name("y", 0))) continue;
    ++files;
    Tensors inputs, with_gradient, wanted_gradients;
    for (std::size_t i = 0; file.has(name("x", i)); ++i) {
      Tensor x = file.values[name("x", i)];
      if (file.has(name("g", i))) {
        x = x.with_grad();
        with_gradient.push_back(x);
        wanted_gradients.push_back(file.values[name("g", i)]);
      }
      inputs.push_back(std::move(x));
    }
    const Tensors outputs = function(inputs);
    INFO(file.values.path());
    CHECK_FALSE(file.has(name("y", outputs.size())));
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      INFO("output " << i);
      CHECK(difference(outputs[i], file.values[name("y", i)], tolerance) == "");
    }
    if (with_gradient.empty()) continue;
    const Tensors gradient = gradients(weighted_sum(outputs), with_gradient);
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      INFO("gradient " << i);
      CHECK(difference(gradient[i], wanted_gradients[i], tolerance) == "");
    }
  }
  CHECK(files > 0);
}

}  // namespace ebb::tests::parity
