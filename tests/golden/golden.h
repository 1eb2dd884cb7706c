// Reads golden files and measures the distance of values from theirs.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "ebb/core/files/safetensors.h"
#include "ebb/core/tensor/tensor.h"
#include "ebb/tests/bytes.h"
#include "ebb/tests/source_folder.h"

namespace ebb::tests {

class Golden {
 public:
  // "mlp_f64": a file of this folder.
  explicit Golden(const std::string& name)
      : path_(folder() + name + ".safetensors"), file_(path_) {}

  const std::string& path() const noexcept { return path_; }
  Tensor operator[](const std::string& name) const {
    const safetensors::File::Entry* entry = file_.find(name);
    if (!entry) throw Error(path_ + " has no " + name);
    const Tensor tensor = Tensor::zeros(entry->spec.shape, entry->spec.dtype);
    std::vector<std::byte> values(tensor.bytes());
    file_.read(name, values.data());
    tensor.impl()->storage->copy_in(0, values.data(), values.size());
    return tensor;
  }

 private:
  static std::string folder() { return source_folder() + "/tests/golden/"; }
  const std::string path_;
  const safetensors::File file_;
};

inline std::vector<double> values_of(const Tensor& tensor) { return tensor.to_vector<double>(); }

// |a - b| / |b|, in Euclidean norms; |a| where b is zero. Infinite for other sizes, and for NaN.
inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return INFINITY;
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    norm += b[i] * b[i];
  }
  const double ratio = std::sqrt(norm > 0 ? difference / norm : difference);
  return std::isnan(ratio) ? INFINITY : ratio;
}
inline double distance(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape())) return INFINITY;
  return distance(values_of(a), values_of(b));
}

inline bool bit_equal(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && bytes_of(a) == bytes_of(b);
}

}  // namespace ebb::tests
