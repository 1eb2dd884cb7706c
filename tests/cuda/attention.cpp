// Attention on a GPU: when cuDNN computes it, within which memory, and when ebb does.
#include "ebb/core/ops/attention.h"
#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"
#include "ebb/tests/golden/golden.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

struct Case {
  std::int64_t length, keys, depth, width;
  bool causal = false, masked = false;
};

// y and, if they are wanted, the gradients of q, k and v, on the device.
Tensors attend(const Case& of, DType dtype, const Device& device, bool gradients_too = true) {
  const auto filled = [&](const Shape& shape, int step) {
    std::vector<float> values;
    for (std::int64_t i = 0; i < shape.elements(); ++i)
      values.push_back(static_cast<float>(i * step % 61 - 30) / 32);
    const Tensor leaf = cast(Tensor::from(values, shape), dtype).to(device);
    return gradients_too ? leaf.with_grad() : leaf;
  };
  const Tensors leaves = {filled({1, 2, of.length, of.depth}, 7),
                          filled({1, 2, of.keys, of.depth}, 11),
                          filled({1, 2, of.keys, of.width}, 5)};
  AttentionOptions options{.causal = of.causal};
  if (of.masked) options.mask = cast(zeros({of.length, of.keys}), dtype).to(device);
  const Tensor y = scaled_dot_product_attention(leaves[0], leaves[1], leaves[2], options);
  Tensors all{y.detach()};
  if (gradients_too)
    for (const Tensor& each : gradients(sum(square(y)), leaves)) all.push_back(each);
  return all;
}

}  // namespace

TEST_CASE("cuDNN computes attention of 16 bits without a mask, as the twin says") {
  const Machine machine;
  const Case usual{70, 70, 16, 24}, causal{70, 70, 16, 24, true};
  struct {
    Case of;
    DType dtype = DType::bf16;
    int version = 92600, capability = 90;
    bool is_by_cudnn = true;
  } const cases[] = {{usual},
                     {causal, DType::f16},
                     {{64, 77, 8, 8, true}, DType::f16, 92600, 80},
                     {usual, DType::bf16, 91900, 80},
                     {causal, DType::bf16, 91900, 90, false},
                     {usual, DType::bf16, 90800, 90, false},
                     {usual, DType::f16, 92600, 75, false},
                     {usual, DType::f32, 92600, 90, false},
                     {{70, 70, 16, 24, false, true}, DType::f16, 92600, 90, false},
                     {{70, 70, 12, 24}, DType::f16, 92600, 90, false},
                     {{70, 70, 16, 12}, DType::f16, 92600, 90, false},
                     {{64, 9, 256, 8}},
                     {{64, 9, 264, 8}, DType::bf16, 92600, 90, false},
                     {{63, 70, 16, 24}, DType::f16, 92600, 90, false}};
  for (const auto& [of, dtype, version, capability, is_by_cudnn] : cases) {
    CAPTURE(of.length, of.depth, of.causal, of.masked, dtype, version, capability);
    machine->set_capability(capability);
    machine->set_cudnn(version);
    const Device device = own_cuda();
    const Device twin = Runtime::make_simulated(device.runtime().profile(), std::size_t{4} << 30);
    const auto peak = [&, of = of, dtype = dtype](const Device& on, Tensors& all) {
      memory::reset_peaks(on);
      all = attend(of, dtype, on);
      return memory::stats(on).allocated.peak;
    };
    const Tensors right = attend(of, DType::f32, Device::cpu());
    Tensors got, figures;
    std::size_t taken = 0;
    CHECK(machine.count(&emulated::Statistics::library_calls, [&] { taken = peak(device, got); }) ==
          (is_by_cudnn ? 1 : 0));
    CHECK(taken == peak(twin, figures));
    const Tensor alone = attend(of, dtype, device, false)[0];  // nobody wants its sums
    CHECK(alone.to_vector<float>() == got[0].to_vector<float>());
    for (std::size_t i = 0; i < right.size(); ++i) {
      CAPTURE(i);
      CHECK(distance(cast(got[i], DType::f32).to(Device::cpu()), right[i]) <
            (dtype == DType::bf16 ? 3e-2 : 4e-3));
    }
  }
}

TEST_CASE("cuDNN's plan is given the addresses of each call") {
  const Machine machine;
  machine->set_cudnn(92600);
  const Device device = own_cuda();
  const Tensor x = cast(Tensor::full({1, 1, 64, 8}, 0.5), DType::bf16).to(device);
  const Tensor first = scaled_dot_product_attention(x, x, x),
               second = scaled_dot_product_attention(x, x, x);
  for (const Tensor& y : {first, second})
    CHECK(y.to_vector<float>() == std::vector<float>(512, 0.5f));
}
