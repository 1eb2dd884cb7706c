// Lower bounds of a training step: arithmetic, bytes and launches, each measured alone.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "ebb/benchmarks/steps/models.h"
#include "ebb/benchmarks/steps/worker.h"
#include "ebb/core/kernels/workers.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/random.h"
#include "ebb/eager/no_grad.h"

namespace ebb::benchmarks {

// The matrix products of a model, on operands made beforehand. Their values are random: on equal
// numbers a GPU takes less power and runs faster.
class Products final : public Worker {
 public:
  Products(const Model& model, const Device& device, DType dtype) : products_(model.products) {
    for (const Shape& shape : model.operands)
      operands_.push_back(uniform(shape, {.low = -1, .high = 1, .dtype = dtype, .device = device}));
  }
  // Each result's memory comes from the cache, which is warm after the first step; it costs a few
  // dozen ns.
  Tensor step() override {
    const NoGrad no_grad;
    Tensor last;
    for (const Product& product : products_)
      for (std::int64_t i = 0; i < product.times; ++i)
        last = matmul(operands_[product.a], operands_[product.b], product.options);
    return last;
  }

 private:
  const std::vector<Product> products_;
  std::vector<Tensor> operands_;
};

// Host memory traffic of Adam: reads four arrays of the size of a model's parameters and writes
// three.
class Bandwidth final : public Worker {
 public:
  explicit Bandwidth(const Model& model) {
    const Parameters parameters(Device::cpu());
    model.build(parameters);
    for (auto& array : arrays_) array.resize(static_cast<std::size_t>(parameters.count()));
  }
  Tensor step() override {
    const auto all = static_cast<std::int64_t>(arrays_[0].size());
    Workers::instance().run((all + kPiece - 1) / kPiece, [&](std::int64_t piece) {
      const std::int64_t begin = piece * kPiece, end = std::min(all, begin + kPiece);
      float* const p = arrays_[0].data();
      float* const m = arrays_[1].data();
      float* const v = arrays_[2].data();
      const float* const g = arrays_[3].data();
      for (std::int64_t i = begin; i < end; ++i) {
        p[i] += g[i];
        m[i] += g[i];
        v[i] += g[i];
      }
    });
    return {};
  }

 private:
  static constexpr std::int64_t kPiece = 16'384;
  std::array<std::vector<float>, 4> arrays_;
};

// A copy within device memory: each float is read once and written once.
class DeviceCopy final : public Worker {
 public:
  DeviceCopy(std::int64_t elements, const Device& device)
      : source_(Tensor::zeros({elements}, DType::f32, device)) {}
  Tensor step() override {
    const NoGrad no_grad;
    return source_.clone();
  }

 private:
  const Tensor source_;
};

// An operator that does next to nothing.
class TinyOperator final : public Worker {
 public:
  explicit TinyOperator(const Device& device) : x_(Tensor::zeros({4}, DType::f32, device)) {}
  Tensor step() override {
    const NoGrad no_grad;
    return x_ + 1;
  }

 private:
  const Tensor x_;
};

}  // namespace ebb::benchmarks
