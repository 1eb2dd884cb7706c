#include <algorithm>
#include <atomic>
#include <vector>

#include "ebb/core/base/half.h"
#include "ebb/kernels/cuda/conv_cudnn_plan.h"
#include "ebb/kernels/cuda/conv_prepared.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/tests/gpu_check/facts/examples.h"
#include "ebb/tests/gpu_check/facts/families.h"

namespace ebb::facts {
namespace {

using cuda::ConvPass;

constexpr struct {
  const char* name;
  ConvPass pass;
  Kernel run;
  MemoryRule memory;
} kPasses[] = {
    {"forward", ConvPass::forward, cuda::conv2d, cuda::conv2d_memory},
    {"input gradient", ConvPass::input_gradient, cuda::conv_transpose2d,
     cuda::conv_transpose2d_memory},
    {"weight gradient", ConvPass::weight_gradient, cuda::conv2d_weight_gradient,
     cuda::conv2d_weight_gradient_memory},
};

// A pass on memory of its own, with numbers as its inputs.
class Convolution {
 public:
  Convolution(Gpu& gpu, const ConvLayer& layer, DType dtype, std::size_t pass)
      : gpu_(gpu), pass_(kPasses[pass]) {
    const ConvAttributes of{.stride = {layer.stride, layer.stride},
                            .padding = {layer.padding, layer.padding}};
    attributes_ = of;
    const std::int64_t out = (layer.size + 2 * layer.padding - layer.kernel) / layer.stride + 1;
    const Spec x{dtype, {layer.images, layer.channels, layer.size, layer.size}},
        weights{dtype, {layer.filters, layer.channels, layer.kernel, layer.kernel}},
        y{dtype, {layer.images, layer.filters, out, out}};
    const Spec orders[][3] = {{x, weights, y}, {y, weights, x}, {x, y, weights}};
    for (std::size_t i = 0; i < 3; ++i) {
      specs_.push_back(orders[pass][i]);
      buffers_.push_back({allocate(specs_[i].bytes()), specs_[i]});
      if (i < 2) fill(buffers_[i]);
    }
    MemoryQuery asked = query();
    declared_ = pass_.memory(asked).workspace_bytes;
    workspace_ = allocate(std::max<std::size_t>(declared_, 1));
    asked.workspace_bytes = declared_;
    library_ = cuda::prepare_conv(pass_.pass, asked);
    own_ = detail::make_ref<cuda::PreparedConv>();
  }

  Json tell() {
    Json told = {{"pass", pass_.name}, {"way", library_->way()}, {"declared_bytes", declared_}};
    const bool is_by_cudnn = std::string(library_->way()) == "by cuDNN";
    if (is_by_cudnn) describe(told);
    const Launch by_library = launch(*library_), by_own = launch(*own_);
    const auto run = [&](const Launch& one) {
      require(gpu_.backend().run(&gpu_.stream(), {&one, 1}).status, "to run");
    };
    const int count = kEmulated ? 1 : 20;
    if (is_by_cudnn) {
      run(by_library);
      const std::vector<std::byte> first = take_result();
      run(by_library);
      told["same_bits"] = take_result() == first;
      const char* problem = nullptr;
      const auto capture = gpu_.backend().capture(&gpu_.stream(), {&by_library, 1}, problem);
      told["is_captured"] = capture != nullptr;
      if (capture) {
        require(gpu_.backend().replay(&gpu_.stream(), *capture), "to replay");
        told["same_bits_captured"] = take_result() == first;
      } else {
        told["why_not"] = problem;
      }
      told["microseconds"] = gpu_.microseconds_in_stream(count, [&] { run(by_library); });
    }
    told["microseconds_own"] = gpu_.microseconds_in_stream(kEmulated ? 1 : 3, [&] { run(by_own); });
    return told;
  }

 private:
  MemoryQuery query() {
    return {.inputs = {specs_.data(), 2},
            .outputs = {specs_.data() + 2, 1},
            .attributes = &attributes_,
            .profile = &gpu_.profile(),
            .stream = &gpu_.stream()};
  }
  Launch launch(const Prepared& prepared) const {
    return {.run = pass_.run,
            .context = {.inputs = {buffers_.data(), 2},
                        .outputs = {buffers_.data() + 2, 1},
                        .attributes = &attributes_,
                        .workspace = workspace_,
                        .prepared = &prepared,
                        .stream = &gpu_.stream()},
            .name = "conv2d"};
  }
  void describe(Json& told) {
#if EBB_HAS_CUDNN
    const char* problem = nullptr;
    const MemoryQuery asked = query();
    const DType dtype = specs_[2].dtype;
    const bool tf32 = dtype == DType::f32 && is_tf32_allowed();
    cuda::CudnnConvPlan plan;
    plan.choose({pass_.pass, cuda::conv_layout(pass_.pass, asked), dtype, false, tf32}, declared_,
                gpu_.stream().cudnn(problem));
    told["engine"] = plan.engine();
    told["passed_over"] = plan.passed_over();
    told["tensor_cores"] = plan.uses_tensor_cores();
    told["workspace_bytes"] = plan.workspace_bytes();
#else
    static_cast<void>(told);
#endif
  }
  std::byte* allocate(std::size_t bytes) {
    memory_.push_back(std::make_unique<Memory>(gpu_, bytes));
    return memory_.back()->data();
  }
  void fill(const Buffer& buffer) {
    static_cast<void>(for_floating(buffer.spec.dtype, [&](auto type) -> Status {
      using T = decltype(type);
      std::vector<T> values(static_cast<std::size_t>(buffer.elements()));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<T>(0.01f * static_cast<float>(i * 37 % 41) - 0.2f);
      require(gpu_.backend().copy_in(&gpu_.stream(), buffer.data, values.data(),
                                     values.size() * sizeof(T)),
              "to copy numbers");
      return {};
    }));
  }
  // The bytes of the result, which are zeroed.
  std::vector<std::byte> take_result() {
    const Buffer& result = buffers_[2];
    std::vector<std::byte> bytes(result.spec.bytes());
    require(gpu_.backend().copy_out(&gpu_.stream(), bytes.data(), result.data, bytes.size()),
            "to copy a result");
    require(gpu_.backend().fill(&gpu_.stream(), result.data, 0, bytes.size()), "to clear a result");
    return bytes;
  }

  Gpu& gpu_;
  const std::remove_reference_t<decltype(kPasses[0])>& pass_;
  Attributes attributes_;
  std::vector<Spec> specs_;
  std::vector<Buffer> buffers_;  // the inputs and the result
  std::vector<std::unique_ptr<Memory>> memory_;
  std::byte* workspace_ = nullptr;
  std::size_t declared_ = 0;
  detail::Ref<Prepared> library_, own_;
};

}  // namespace

Json convolutions(Gpu& gpu) {
  std::atomic<bool> tf32 = false;
  detail::look_for_tf32_at(tf32);
  Json told;
  const auto tell_all = [&](const char* key, DType dtype) {
    for (const ConvLayer& layer : kConvLayers) {
      for (std::size_t pass = 0; pass < std::size(kPasses); ++pass) {
        Json row = attempt([&] { return Convolution(gpu, layer, dtype, pass).tell(); });
        row["of"] = layer.example;
        row["x"] = {layer.images, layer.channels, layer.size, layer.size};
        row["weights"] = {layer.filters, layer.channels, layer.kernel, layer.kernel};
        told[key].push_back(std::move(row));
      }
      if (kEmulated) break;  // it computes thread by thread: one small layer shows that it works
    }
  };
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) tell_all(name(dtype), dtype);
  tf32 = true;
  tell_all("tf32", DType::f32);
  static const std::atomic<bool> kOff = false;
  detail::look_for_tf32_at(kOff);
  return told;
}

}  // namespace ebb::facts
