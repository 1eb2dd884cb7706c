// Convolutions on a GPU: when cuDNN computes them, within which memory, and when ebb does.
#include <thread>

#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/kernels/conv.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/tf32.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/conv.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/kernels/cuda/plans/cudnn_workspace.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"
#include "ebb/tests/golden/golden.h"

using namespace ebb;
using namespace ebb::tests;
using emulated::Fault;

namespace {

// Values that repeat after a prime number of elements.
Tensor filled(const Shape& shape, int step, DType dtype) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < shape.elements(); ++i)
    values.push_back(static_cast<float>((i * step) % 61 - 30) / 64);
  return cast(Tensor::from(values, shape), dtype);
}

// Results and gradients of a convolution and of a transposed one, each with a bias.
Tensors passes(DType dtype, const Device& device) {
  Tensors leaves;
  for (const Tensor& each : {filled({2, 8, 9, 11}, 7, dtype), filled({6, 4, 3, 3}, 11, dtype),
                             filled({6}, 3, dtype), filled({8}, 5, dtype)})
    leaves.push_back(each.to(device).with_grad());
  const Tensor y = conv2d(leaves[0], leaves[1], leaves[2],
                          {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2});
  const Tensor back =
      conv_transpose2d(y, leaves[1], leaves[3],
                       {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}, .groups = 2});
  Tensors all = gradients(sum(square(back)), leaves);
  all.push_back(y.detach());
  all.push_back(back.detach());
  for (Tensor& each : all) each = cast(each, DType::f32).to(Device::cpu());
  return all;
}
constexpr std::size_t kPasses = 6;  // two results, two gradients each

void check_near(const Tensors& got, const Tensors& right, double bound) {
  for (std::size_t i = 0; i < right.size(); ++i) {
    CAPTURE(i);
    CHECK(distance(got[i], right[i]) < bound);
  }
}

struct Tf32 {
  Tf32() { allow_tf32(true); }
  ~Tf32() { allow_tf32(false); }
};

}  // namespace

TEST_CASE(
    "cuDNN computes convolutions but those of f64, and of bf16 before 8.0, as the twin says") {
  const Machine machine;
  const Tensors right = passes(DType::f32, Device::cpu());
  for (const int capability : {90, 75})
    for (const char* form : {"cudnn", "composed"})
      for (const auto& [dtype, bound] : {std::pair(DType::f32, 1e-5),
                                         {DType::f64, 1e-5},
                                         {DType::f16, 3e-3},
                                         {DType::bf16, 3e-2}}) {
        CAPTURE(capability, form, dtype);
        machine->set_capability(capability);
        const Variable variable("EBB_CUDA_LSTM", form);
        const Device device = own_cuda();
        const Device twin =
            Runtime::make_simulated(device.runtime().profile(), std::size_t{4} << 30);
        const bool is_by_cudnn = form == std::string("cudnn") && dtype != DType::f64 &&
                                 (dtype != DType::bf16 || capability >= 80);
        Tensors got;
        CHECK(machine.count(&emulated::Statistics::library_calls, [&, dtype = dtype] {
          got = passes(dtype, device);
        }) == (is_by_cudnn ? kPasses : 0));
        check_near(got, right, bound);
        const auto peak = [&, dtype = dtype](const Device& on) {
          const Tensor x = filled({2, 8, 9, 11}, 7, dtype).to(on),
                       w = filled({6, 8, 3, 3}, 11, dtype).to(on).with_grad();
          memory::reset_peaks(on);
          sum(conv2d(x, w)).backward();
          return memory::stats(on).allocated.peak;
        };
        CHECK(peak(device) == peak(twin));
      }
}

TEST_CASE(
    "a convolution is prepared for cuDNN within the workspace that was declared, and says so") {
  const Machine machine;
  const Device device = own_cuda();
  const Spec in[] = {{DType::f16, {2, 8, 9, 9}}, {DType::f16, {8, 8, 3, 3}}},
             out[] = {{DType::f16, {2, 8, 7, 7}}};
  const Attributes attributes = ConvAttributes();
  MemoryQuery query{.inputs = in,
                    .outputs = out,
                    .attributes = &attributes,
                    .profile = &device.runtime().profile(),
                    .stream = device.runtime().stream()};
  query.workspace_bytes = conv2d_op.cuda.memory(query).workspace_bytes;
  CHECK(conv2d_op.cuda.prepare(query)->way() == std::string("by cuDNN"));
  for (const std::size_t bytes : {std::size_t{256}, std::size_t{5000}})
    CHECK(cuda::cudnn_limit_of(cuda::cudnn_workspace_bytes(bytes)) == aligned_bytes(bytes));
}

TEST_CASE("a convolution and its bias are rounded once") {
  const Machine machine;
  for (const char* form : {"cudnn", "composed"}) {
    const Variable variable("EBB_CUDA_LSTM", form);
    const Device device = own_cuda();
    // 256 + 1 and then - 256: in bf16 a sum that is rounded before the bias is added loses the 1.
    const Tensor x = Tensor::full({1, 257, 2, 2}, 1, DType::bf16, device);
    const Tensor w = Tensor::full({8, 257, 1, 1}, 1, DType::bf16, device);
    const Tensor b = Tensor::full({8}, -256, DType::bf16, device);
    CHECK(cast(conv2d(x, w, b), DType::f32).to_vector<float>() == std::vector<float>(32, 1));
  }
}

TEST_CASE("f32 convolutions are f32 in full, and TF32 where that is allowed") {
  const Machine machine;
  const Tensors right = passes(DType::f32, Device::cpu());
  const Device device = own_cuda();
  check_near(passes(DType::f32, device), right, 1e-6);
  const Tf32 allowed;
  const Tensors got = passes(DType::f32, device);
  check_near(got, right, 2e-3);
  CHECK(distance(got.back(), right.back()) > 1e-6);
}

TEST_CASE("a convolution is ebb's own where cuDNN refuses its plan, or operands begin anywhere") {
  const Machine machine;
  const Device device = own_cuda();
  const Tensor x = filled({3, 3, 5, 5}, 7, DType::f16).to(device),
               w = filled({4, 3, 3, 3}, 11, DType::f16).to(device),
               b = filled({4}, 3, DType::f16).to(device);
  const auto last = [&](const Tensor& images) {
    return cast(conv2d(images, w, b), DType::f32).to_vector<float>();
  };
  const std::vector<float> right = last(x);
  machine->inject(Fault::cudnn, 0, 3000);  // CUDNN_STATUS_NOT_SUPPORTED
  CHECK(distance(Tensor::from(last(x)), Tensor::from(right)) < 1e-3);
  machine->inject(Fault::cudnn, 0, 5000);  // CUDNN_STATUS_EXECUTION_FAILED
  CHECK_THROWS_WITH(last(x), Catch::Contains("[conv2d]"));
  std::vector<float> second;
  CHECK(machine.count(&emulated::Statistics::library_calls,
                      [&] { second = last(slice(x, 1, 2)); }) == 0);
  CHECK(distance(Tensor::from(second),
                 Tensor::from(std::vector<float>(right.begin() + 36, right.begin() + 72))) < 1e-3);
}

TEST_CASE("a device convolves by cuDNN or without it, whichever its first convolution could") {
  const Machine machine;
  const Tensor w = filled({4, 4, 3, 3}, 11, DType::f32);
  const auto convolved = [&](const Device& device, std::int64_t side) {
    const std::uint64_t before = machine.statistics().library_calls;
    conv2d(filled({1, 4, side, side}, 7, DType::f32).to(device), w.to(device)).to(Device::cpu());
    return machine.statistics().library_calls > before;
  };
  const Device with = own_cuda(), without = own_cuda();
  CHECK(convolved(with, 7));
  machine->inject(Fault::create_cudnn, 0, 2);
  CHECK_FALSE(convolved(without, 7));
  CHECK_FALSE(convolved(without, 9));
  std::thread([&] {
    machine->inject(Fault::create_cudnn, 0, 2);
    CHECK_THROWS_WITH(convolved(with, 7), Catch::Contains("[conv2d]"));
    CHECK(convolved(with, 7));
  }).join();
}
