// An operator whose file nvcc has not compiled, on a GPU and on a GPU's twin.
#include "ebb/core/base/error.h"
#include "ebb/core/memory/predict.h"
#include "ebb/custom_operator.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/custom/operators.h"
#include "ebb/tests/device/test_device.h"

using namespace ebb;
using namespace ebb::tests;

static_assert(!EBB_CUDA_KERNELS);

namespace {

struct Halved {
  static constexpr const char* name = "halved";
  static Tensors gradient(const GradientContext& g) { return {g.take_dy() * 0.5}; }
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return x / 2;
  }
};

Tensor halved(const Operand& x) { return custom_operator(Halved{}, x); }

// A user's operator that defines nothing for GPUs.
constinit const OpDef cpu_alone_op{
    .name = "cpu_alone",
    .infer = [](Inference& i) { i.output(i.inputs[0].dtype, i.inputs[0].shape); },
    .cpu = {[](const KernelContext&) { return Status(); }}};

std::string at_line(int line) { return "not_for_cuda.cpp:" + std::to_string(line) + ")"; }

}  // namespace

TEST_CASE("an operator that nvcc has not compiled works on the CPU, and is refused on a GPU") {
  const Tensor x = Tensor::from({1.f, 2.f, 5.f});
  Graph graph;
  const Tensor fed = graph.placeholder("x", DType::f32, {-1});
  const int placed = __LINE__ + 1;
  const Tensor y = halved(fed);
  Session session(graph);
  if (!on_cuda()) {
    CHECK(halved(x).to_vector<float>() == std::vector<float>{0.5f, 1, 2.5f});
    CHECK(session.run(y, {{fed, x}}).to_vector<float>() == std::vector<float>{0.5f, 1, 2.5f});
    return;
  }
  const std::string why = ": nvcc has not compiled its file (ebb_add_custom_operators)";
  const int line = __LINE__ + 1;
  CHECK_ERROR(halved(x), Error, why);
  CHECK_ERROR(halved(x), Error, "[halved] has no kernel for device ");
  CHECK_ERROR(halved(x), Error, at_line(line + 2));
  CHECK_ERROR(session.run(y, {{fed, x}}), Error, why);
  CHECK_ERROR(session.run(y, {{fed, x}}), Error, at_line(placed));
}

TEST_CASE("a GPU's twin tells what an operator takes that nvcc has not compiled") {
  const auto step = [](const Device& device) {
    const Tensor x = Tensor::full({1000}, 1, DType::f32, device).with_grad();
    sum(halved(x)).backward();
  };
  const Device twin = Device::simulated("h200", std::size_t{1} << 30);
  const memory::Prediction prediction = memory::predict(twin, step);
  CHECK(prediction.fits);
  CHECK(prediction.peak_bytes >= 2 * 4000);
  CHECK_ERROR(
      apply_one(cpu_alone_op, {Tensor::full({3}, 1, DType::f32, twin)}, {}, CallSite::here()),
      Error, "[cpu_alone] has no kernel for device");
}
