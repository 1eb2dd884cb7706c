#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "ebb/core/base/half.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/plans/linear_products.h"
#include "ebb/kernels/cuda/plans/recurrent_layout.h"
#include "ebb/kernels/cuda/product.h"
#include "ebb/kernels/cuda/runtime/libraries.h"
#include "ebb/tests/gpu_check/facts/examples.h"
#include "ebb/tests/gpu_check/facts/families.h"

namespace ebb::facts {
namespace {

using cuda::Epilogue;
using cuda::ProductShape;

constexpr const char* name(Epilogue epilogue) noexcept {
  constexpr const char* names[] = {"none", "bias", "relu", "bias_relu", "column_sums"};
  return names[static_cast<std::size_t>(epilogue)];
}

MemoryQuery query_on(Gpu& gpu) {
  MemoryQuery query;
  query.profile = &gpu.profile();
  query.stream = &gpu.stream();
  return query;
}

struct Asked {
  std::string example, product;
  ProductShape shape;
  Epilogue epilogue = Epilogue::none;
};

std::vector<Asked> products_of(const DenseLayer& layer, DType dtype) {
  const Spec x{dtype, {layer.rows, layer.in}}, w{dtype, {layer.in, layer.out}};
  const DenseSizes size(x, w);
  return {{layer.example, "y = x w", cuda::forward_product(dtype, size),
           layer.relu ? Epilogue::bias_relu : Epilogue::bias},
          {layer.example, "dw = x^T dy", cuda::weight_product(dtype, size), Epilogue::column_sums},
          {layer.example, "dx = dy w^T", cuda::input_product(dtype, size)}};
}

// The matrix products that ebb composes an LSTM of.
std::vector<Asked> products_of(const LstmStack& stack, DType dtype) {
  const RecurrentAttributes attributes{.layers = stack.layers, .hidden = stack.hidden};
  const RecurrentSizes size({dtype, {stack.batch, stack.time, stack.in}}, attributes);
  std::vector<Asked> all;
  const auto add = [&](const auto& products, const char* pass) {
    for (std::size_t i = 0; i < products.shapes.size(); ++i)
      if (!products.shapes[i].is_empty())
        all.push_back({stack.example, pass + std::to_string(i), products.shapes[i]});
  };
  add(cuda::RecurrentForwardProducts(size, true, true), "lstm forward ");
  add(cuda::RecurrentBackwardProducts(size), "lstm backward ");
  return all;
}

// Operands for one product at a time.
class Operands {
 public:
  explicit Operands(Gpu& gpu) : memory_(gpu, 5 * kEach) {}
  // All begin `past` bytes behind an aligned address. Throws Error for operands that are too large.
  cuda::ProductOperands of(const ProductShape& shape, std::size_t past = 0) const {
    const auto extent = [&](std::int64_t rows, std::int64_t stride) {
      return static_cast<std::size_t>(rows * stride) * size_of(shape.dtype);
    };
    require(std::max({extent(shape.transpose_a ? shape.k : shape.m, shape.a_stride),
                      extent(shape.transpose_b ? shape.n : shape.k, shape.b_stride),
                      extent(shape.m, shape.c_stride)}) +
                    past <=
                kEach,
            "to have operands of this size");
    return {.a = part(0) + past,
            .b = part(1) + past,
            .c = part(2) + past,
            .vector = part(3) + past,
            .workspace = part(4)};
  }

 private:
  static constexpr std::size_t kEach = std::size_t{40} << 20;
  std::byte* part(std::size_t i) const noexcept { return memory_.data() + i * kEach; }

  const Memory memory_;
};

Json ask(Gpu& gpu, const Asked& asked, const Operands& operands) {
  const ProductShape& shape = asked.shape;
  const MemoryQuery query = query_on(gpu);
  const auto product = cuda::find_product(shape, asked.epilogue, query, 16);
  Json told = {{"of", asked.example},
               {"product", asked.product},
               {"mnk", {shape.m, shape.n, shape.k}},
               {"epilogue", name(asked.epilogue)},
               {"fell_back", product == nullptr ||
                                 (asked.epilogue != Epilogue::none && !product->has_epilogue())}};
  if (product == nullptr) {
    told["by"] = "ebb's own product";
    return told;
  }
  const cuda::LibraryProduct::Choice choice = product->choice();
  told["by"] = product->has_epilogue() || asked.epilogue == Epilogue::none
                   ? "cuBLASLt"
                   : "cuBLASLt, and the epilogue by ebb";
  told["algorithm"] = choice.algorithm;
  told["tile"] = choice.tile;
  told["split"] = choice.split;
  told["workspace_bytes"] = choice.workspace_bytes;
  told["allowed_bytes"] = cuda::product_limit(shape, &gpu.profile());
  const auto time = [&](cuda::LibraryProduct* of, std::size_t past) {
    return attempt([&] {
      require(of != nullptr, "to find an algorithm");
      const cuda::ProductOperands at = operands.of(shape, past);
      return gpu.microseconds_in_stream(kEmulated ? 1 : 20, [&] {
        const Status status = of->run(&gpu.stream(), at);
        // The emulated library refuses some products, which is no fact about a GPU.
        require(kEmulated && status.refused ? Status{} : status, "to run a product");
      });
    });
  };
  told["microseconds"] = time(product.get(), 0);
  const std::size_t item = size_of(shape.dtype);
  told["unaligned_microseconds"] =
      time(cuda::find_product(shape, asked.epilogue, query, item).get(), item);
  return told;
}

// Whether a NaN in one row of a makes the same row of the result NaN.
template <class T>
bool keeps_nan(Gpu& gpu, const ProductShape& shape, const cuda::ProductOperands& at,
               const std::function<Status()>& run) {
  constexpr std::size_t kRow = 5;
  const std::size_t k = static_cast<std::size_t>(shape.k), n = static_cast<std::size_t>(shape.n);
  const T nan = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
  std::byte* const place =
      const_cast<std::byte*>(static_cast<const std::byte*>(at.a)) + (kRow * k + k / 2) * sizeof(T);
  require(gpu.backend().copy_in(&gpu.stream(), place, &nan, sizeof(T)), "to copy a NaN");
  require(run(), "to run a product");
  std::vector<T> row(n);
  require(
      gpu.backend().copy_out(&gpu.stream(), row.data(),
                             static_cast<std::byte*>(at.c) + kRow * n * sizeof(T), n * sizeof(T)),
      "to copy a row");
  return std::all_of(row.begin(), row.end(),
                     [](T value) { return std::isnan(static_cast<float>(value)); });
}

}  // namespace

Json products(Gpu& gpu) {
  const Operands operands(gpu);
  std::atomic<bool> tf32 = false;
  detail::look_for_tf32_at(tf32);
  Json told;
  const auto ask_all = [&](const char* key, DType dtype) {
    Json& rows = told[key] = Json::array();
    const auto ask_each = [&](const auto& layers) {
      for (const auto& layer : layers)
        for (const Asked& asked : products_of(layer, dtype))
          rows.push_back(ask(gpu, asked, operands));
    };
    ask_each(kDenseLayers);
    ask_each(kLstmStacks);
  };
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    ask_all(ebb::name(dtype), dtype);
  tf32 = true;
  ask_all("tf32", DType::f32);
  static const std::atomic<bool> kOff = false;
  detail::look_for_tf32_at(kOff);
  return told;
}

Json relu_of_nan(Gpu& gpu) {
  const MemoryQuery query = query_on(gpu);
  const Operands operands(gpu);
  Json told;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16})
    for (const Epilogue epilogue : {Epilogue::relu, Epilogue::bias_relu}) {
      const ProductShape shape = cuda::dense_product(dtype, 32, 64, 48);
      const cuda::ProductOperands at = operands.of(shape);
      const auto product = cuda::find_product(shape, epilogue, query, 16);
      Json& row = told[ebb::name(dtype)][name(epilogue)];
      static_cast<void>(for_floating(dtype, [&](auto type) -> Status {
        using T = decltype(type);
        row["ebb_keeps_it"] = keeps_nan<T>(gpu, shape, at, [&] {
          return cuda::multiply_own(gpu.stream().get(), shape, epilogue, at);
        });
        if (product != nullptr && product->has_epilogue())
          row["cublaslt_keeps_it"] =
              keeps_nan<T>(gpu, shape, at, [&] { return product->run(&gpu.stream(), at); });
        return {};
      }));
    }
  return told;
}

}  // namespace ebb::facts
