#include <algorithm>
#include <atomic>
#include <vector>

#include "ebb/core/base/half.h"
#include "ebb/kernels/cuda/cudnn_operations.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/prepared_plan.h"
#include "ebb/tests/gpu_check/facts/examples.h"
#include "ebb/tests/gpu_check/facts/families.h"

namespace ebb::facts {
namespace {

using cuda::ConvPass;

// An operator on memory of its own, with numbers as its inputs.
class Planned {
 public:
  // Specs: of the inputs, then of the outputs.
  Planned(Gpu& gpu, const DeviceKernel& of, std::vector<Spec> specs, std::size_t inputs,
          const Attributes& attributes)
      : gpu_(gpu),
        of_(of),
        attributes_(attributes),
        inputs_(inputs),
        specs_(std::move(specs)),
        own_(detail::make_ref<cuda::PreparedPlan>()) {
    for (const Spec& spec : specs_) {
      buffers_.push_back({allocate(spec.bytes()), spec});
      if (buffers_.size() <= inputs) fill(buffers_.back());
    }
    MemoryQuery asked = query();
    asked.workspace_bytes = declared_ = of.memory(asked).workspace_bytes;
    workspace_ = allocate(std::max<std::size_t>(declared_, 1));
    library_ = of.prepare(asked);
  }

  MemoryQuery query() const {
    return {.inputs = {specs_.data(), inputs_},
            .outputs = {specs_.data() + inputs_, specs_.size() - inputs_},
            .attributes = &attributes_,
            .profile = &gpu_.profile(),
            .stream = &gpu_.stream()};
  }
#if EBB_HAS_CUDNN
  // What the plan is that cuDNN has for it.
  void describe(Json& told, const cuda::CudnnOperation& operation) const {
    const char* problem = nullptr;
    cuda::CudnnPlan plan;
    plan.choose(operation, declared_, {gpu_.stream().cudnn(problem)});
    told["engine"] = plan.engine();
    told["passed_over"] = plan.passed_over();
    told["tensor_cores"] = plan.uses_tensor_cores();
    told["workspace_bytes"] = plan.workspace_bytes();
  }
#endif

  Json tell() {
    Json told = {{"way", library_->way()}, {"declared_bytes", declared_}};
    const bool is_by_cudnn = std::string(library_->way()) == "by cuDNN";
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
  Launch launch(const Prepared& prepared) const {
    return {.run = of_.run,
            .context = {.inputs = {buffers_.data(), inputs_},
                        .outputs = {buffers_.data() + inputs_, buffers_.size() - inputs_},
                        .attributes = &attributes_,
                        .workspace = workspace_,
                        .prepared = &prepared,
                        .stream = &gpu_.stream()},
            .name = "planned"};
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
  // The bytes of the first result, which are zeroed.
  std::vector<std::byte> take_result() {
    const Buffer& result = buffers_[inputs_];
    std::vector<std::byte> bytes(result.spec.bytes());
    require(gpu_.backend().copy_out(&gpu_.stream(), bytes.data(), result.data, bytes.size()),
            "to copy a result");
    require(gpu_.backend().fill(&gpu_.stream(), result.data, 0, bytes.size()), "to clear a result");
    return bytes;
  }

  Gpu& gpu_;
  const DeviceKernel of_;
  const Attributes attributes_;
  const std::size_t inputs_;
  const std::vector<Spec> specs_;
  std::vector<Buffer> buffers_;
  std::vector<std::unique_ptr<Memory>> memory_;
  std::byte* workspace_ = nullptr;
  std::size_t declared_ = 0;
  detail::Ref<Prepared> own_, library_;
};

constexpr struct {
  const char* name;
  ConvPass pass;
  DeviceKernel of;
} kPasses[] = {
    {"forward", ConvPass::forward, {cuda::conv2d, cuda::conv2d_memory, cuda::conv2d_prepare}},
    {"input gradient",
     ConvPass::input_gradient,
     {cuda::conv_transpose2d, cuda::conv_transpose2d_memory, cuda::conv_transpose2d_prepare}},
    {"weight gradient",
     ConvPass::weight_gradient,
     {cuda::conv2d_weight_gradient, cuda::conv2d_weight_gradient_memory,
      cuda::conv2d_weight_gradient_prepare}},
};

Json tell_pass(Gpu& gpu, const ConvLayer& layer, DType dtype, std::size_t pass) {
  const ConvAttributes attributes{.stride = {layer.stride, layer.stride},
                                  .padding = {layer.padding, layer.padding}};
  const std::int64_t out = (layer.size + 2 * layer.padding - layer.kernel) / layer.stride + 1;
  const Spec x{dtype, {layer.images, layer.channels, layer.size, layer.size}},
      weights{dtype, {layer.filters, layer.channels, layer.kernel, layer.kernel}},
      y{dtype, {layer.images, layer.filters, out, out}};
  const Spec orders[][3] = {{x, weights, y}, {y, weights, x}, {x, y, weights}};
  Planned planned(gpu, kPasses[pass].of, {orders[pass], orders[pass] + 3}, 2, attributes);
  Json told = planned.tell();
#if EBB_HAS_CUDNN
  const bool tf32 = dtype == DType::f32 && is_tf32_allowed();
  planned.describe(told, cuda::describe({kPasses[pass].pass,
                                         cuda::conv_layout(kPasses[pass].pass, planned.query()),
                                         dtype, false, tf32}));
#endif
  told["pass"] = kPasses[pass].name;
  return told;
}

}  // namespace

Json convolutions(Gpu& gpu) {
  std::atomic<bool> tf32 = false;
  detail::look_for_tf32_at(tf32);
  Json told;
  const auto tell_all = [&](const char* key, DType dtype) {
    for (const ConvLayer& layer : kConvLayers) {
      for (std::size_t pass = 0; pass < std::size(kPasses); ++pass) {
        Json row = attempt([&] { return tell_pass(gpu, layer, dtype, pass); });
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

Json attention(Gpu& gpu) {
  Json told;
  const DeviceKernel of{cuda::attention, cuda::attention_memory, cuda::attention_prepare};
  for (const DType dtype : {DType::f16, DType::bf16})
    for (const bool causal : {false, true})
      for (const std::int64_t length : {70, 1024}) {
        if (kEmulated && length > 70) continue;
        const std::int64_t heads = kEmulated ? 2 : 96, depth = 64;
        const Spec each{dtype, {heads, length, depth}};
        Json row = attempt([&] {
          Planned planned(gpu, of, {each, each, each, each, {DType::f32, {heads, length}}}, 3,
                          AttentionAttributes{.scale = 0.125, .causal = causal});
          Json tells = planned.tell();
#if EBB_HAS_CUDNN
          planned.describe(tells,
                           cuda::describe_attention({each.shape, each.shape}, dtype, causal, true));
#endif
          return tells;
        });
        row["dtype"] = name(dtype);
        row["causal"] = causal;
        row["of"] = {heads, length, depth};
        told.push_back(std::move(row));
      }
  return told;
}

}  // namespace ebb::facts
