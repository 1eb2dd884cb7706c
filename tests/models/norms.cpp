// Normalisations: running statistics, halves and errors; their values are in golden.cpp.

#include "ebb/ebb.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/in_mode.h"
#include "ebb/tests/line.h"

namespace ebb::tests {
TEST_CASE("the running statistics of 16 bits are f32, and those of a batch enter them",
          "[models]") {
  const DType dtype = GENERATE(DType::f16, DType::bf16);
  const Parameters parameters(Device::cpu(), Seed{1}, dtype);
  const models::BatchNorm norm(parameters, 2, {.momentum = 0.5});
  CHECK(parameters["running_mean"].dtype() == DType::f32);
  const Tensor x = cast(Tensor::from({{1.0f, 2.0f}, {3.0f, 6.0f}}), dtype);
  const Tensor y = norm(x, Phase::training);
  CHECK(y.dtype() == dtype);
  CHECK(values_of(parameters["running_mean"]) == std::vector<double>{1, 2});
  CHECK(values_of(parameters["running_variance"]) == std::vector<double>{1.5, 4.5});
  CHECK_FALSE(parameters["running_mean"].requires_grad());
  const Tensor z = norm(x);  // inference changes nothing
  CHECK(values_of(parameters["running_mean"]) == std::vector<double>{1, 2});
  CHECK(z.shape() == x.shape());
}

TEST_CASE("a batch of none leaves running statistics as they were, in both modes", "[models]") {
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::bf16);
  const Tensor none = Tensor::zeros({0, 2, 3}, dtype),
               some = cast(Tensor::from({1.f, 3.f, 5.f, 2.f, 2.f, 8.f}, {1, 2, 3}), dtype);
  const bool as_graph = GENERATE(false, true);
  InMode mode(as_graph, dtype);
  const models::BatchNorm norm(mode.parameters, 2);
  const auto train = mode.function({{dtype, {-1, 2, 3}}}, [&](const Tensors& in) -> Tensors {
    return {norm(in[0], Phase::training)};
  });
  for (const Tensor& batch : {none, some, none}) {
    CAPTURE(batch.shape().to_string(), as_graph);
    const auto before = mode.values();
    CHECK(train({batch})[0].shape() == batch.shape());
    for (const char* name : {"running_mean", "running_variance"})
      CHECK(bit_equal(mode[name], before.at(name)) == (batch.size(0) == 0));
  }
}

TEST_CASE("a batch norm whose step fails, and one without elements enough, say so", "[models]") {
  const Parameters parameters(Device::cpu());
  const models::BatchNorm norm(parameters, 3);
  CHECK_ERROR_HERE(norm(Tensor::zeros({1, 3}), Phase::training), ShapeError,
                   "[batch_norm] takes more than one element of each channel: one has no variance");
  CHECK(values_of(parameters["running_variance"]) == std::vector<double>(3, 1));
  CHECK_ERROR(norm(Tensor::zeros({2, 4}), Phase::training), ShapeError, "[batch_norm] ");
  CHECK_ERROR(norm(Tensor::zeros({2, 4})), ShapeError, "[batch_norm] scale and shift must be [4]");
  CHECK_ERROR(norm(Tensor::zeros({3})), ShapeError, "[batch_norm] there is no axis 1");
  CHECK_ERROR(models::GroupNorm(parameters.scope("g"), 4, 6), Error,
              "[group_norm] channels = 6 is no multiple of groups = 4");
  CHECK_ERROR(models::LayerNorm(parameters.scope("l"), {0}), Error,
              "[layer_norm] a size = 0 is below 1");
  CHECK_ERROR_HERE(models::LayerNorm(parameters.scope("l"), -3), Error, "");
  CHECK_ERROR(models::LayerNorm(parameters.scope("l"), {}), Error,
              "[layer_norm] the number of axes = 0 is below 1");
  const models::BatchNorm last(parameters.scope("b"), 4, {.axis = 2});
  CHECK(last(Tensor::zeros({2, 3, 4})).shape() == Shape{2, 3, 4});
  CHECK_ERROR(last(Tensor::zeros({2, 4, 3})), ShapeError, "scale and shift must be [3]");
  const models::LayerNorm of_last(parameters.scope("last"), 3);
  CHECK(parameters["last.scale"].shape() == Shape{3});
  const models::LayerNorm layer(parameters.scope("l"), {2, 3});
  CHECK_ERROR(layer(Tensor::zeros({2, 2})), ShapeError,
              "[layer_norm] scale and shift must be [2, 2]; inputs are f32[2, 2], f32[2, 3], "
              "f32[2, 3]");
  CHECK_ERROR(rms_norm(Tensor::zeros({2, 3}), Tensor::zeros({2})), ShapeError,
              "[rms_norm] scale must be [3]; ");
}

TEST_CASE("second derivatives of rows that hardly vary are computed in float for 16 bits",
          "[models]") {
  const auto second = [](DType dtype, const auto& norm) {
    const float more = 0.5f + 0x1p-8f;
    const Tensor rows = Tensor::from({{0.5f, more}, {0.5f, 0.5f}, {more, 0.5f}});
    const Tensor weights = Tensor::from({{1.f, 2.f}, {0.5f, -1.f}, {3.f, 0.25f}});
    const Tensor x = cast(rows, dtype).with_grad();
    const Tensor loss = sum(norm(x) * cast(weights, dtype));
    const Tensor first = gradients(loss, {x}, {.create_graph = true})[0];
    return values_of(cast(gradients(sum(square(first * 0x1p-10)), {x})[0], DType::f32));
  };
  const auto layer = [](const Tensor& x) { return layer_norm(x); };
  const auto root = [](const Tensor& x) { return rms_norm(x - 0.5); };
  const auto in_f32 = [&](const auto& norm) { return second(DType::f32, norm); };
  CHECK(distance(second(DType::f16, layer), in_f32(layer)) < 1e-2);
  CHECK(distance(second(DType::f16, root), in_f32(root)) < 1e-2);
  CHECK(distance(second(DType::bf16, layer), in_f32(layer)) < 5e-2);
  CHECK(distance(second(DType::bf16, root), in_f32(root)) < 5e-2);
}

}  // namespace ebb::tests
