#include <vector>

#include "ebb/core/base/half.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/kernels/cuda/dispatch.h"
#include "ebb/kernels/cuda/lstm_cudnn_layer.h"
#include "ebb/kernels/cuda/plans/lstm_cudnn_layout.h"
#include "ebb/tests/gpu_check/facts/examples.h"
#include "ebb/tests/gpu_check/facts/families.h"

namespace ebb::facts {
namespace {

constexpr DType kDtypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16};

RecurrentAttributes attributes_of(const LstmStack& stack) {
  return {.layers = stack.layers, .hidden = stack.hidden, .d_given = 1};
}
Spec input_of(const LstmStack& stack, DType dtype) {
  return {dtype, {stack.batch, stack.time, stack.in}};
}

// A stack of LSTM layers, forward and backward, on memory of its own. Inputs are filled with
// numbers, outputs with zeros.
class Lstm {
 public:
  Lstm(Gpu& gpu, const LstmStack& stack, DType dtype)
      : gpu_(gpu), attributes_(attributes_of(stack)) {
    const auto spec = [&](std::initializer_list<std::int64_t> dims) { return Spec{dtype, dims}; };
    const std::int64_t hidden = stack.hidden;
    std::vector<Spec> in = {input_of(stack, dtype)};
    for (std::int32_t layer = 0; layer < stack.layers; ++layer)
      for (const Spec& each : {spec({layer == 0 ? stack.in : hidden, 4 * hidden}),
                               spec({hidden, 4 * hidden}), spec({4 * hidden})})
        in.push_back(each);
    const Spec sequence = spec({stack.batch, stack.time, hidden}),
               state = spec({stack.layers, stack.batch, hidden});
    std::vector<Spec> out = {sequence, state, state, {DType::u8, {0}}};
    const MemoryNeeds needs = cuda::recurrent_memory(query(in, out));
    out.back() = {DType::u8, {static_cast<std::int64_t>(needs.reserve_bytes)}};

    forward_.inputs = with_numbers(in, dtype);
    forward_.outputs = with_zeros(out);
    set(forward_, cuda::recurrent, cuda::recurrent_prepare, needs.workspace_bytes);
    backward_.inputs = {forward_.outputs[3], forward_.outputs[0]};
    for (const Buffer& each : forward_.inputs) backward_.inputs.push_back(each);
    backward_.inputs.push_back(with_numbers({sequence}, dtype)[0]);
    backward_.outputs = with_zeros(in);
    set(backward_, cuda::recurrent_backward, cuda::recurrent_backward_prepare,
        cuda::recurrent_backward_memory(query(specs(backward_.inputs), in)).workspace_bytes);
  }

  const char* way() const noexcept { return forward_.prepared->way(); }
  std::vector<Launch> launches() const { return {forward_.launch, backward_.launch}; }
  // Returns the bytes of the output and of all gradients, and zeroes them.
  std::vector<std::byte> take_results() {
    std::vector<std::byte> all;
    std::vector<Buffer> results = backward_.outputs;
    results.push_back(forward_.outputs[0]);
    for (const Buffer& each : results) {
      const std::size_t bytes = each.spec.bytes(), begin = all.size();
      all.resize(begin + bytes);
      require(gpu_.backend().copy_out(&gpu_.stream(), all.data() + begin, each.data, bytes),
              "to copy a result");
      require(gpu_.backend().fill(&gpu_.stream(), each.data, 0, bytes), "to clear a result");
    }
    return all;
  }

 private:
  struct Pass {
    std::vector<Buffer> inputs, outputs;
    detail::Ref<Prepared> prepared;
    Launch launch;
  };

  static std::vector<Spec> specs(const std::vector<Buffer>& buffers) {
    std::vector<Spec> all;
    for (const Buffer& each : buffers) all.push_back(each.spec);
    return all;
  }
  MemoryQuery query(std::span<const Spec> in, std::span<const Spec> out) {
    return {.inputs = in,
            .outputs = out,
            .attributes = &attributes_,
            .profile = &gpu_.profile(),
            .stream = &gpu_.stream()};
  }
  void* allocate(std::size_t bytes) {
    memory_.push_back(std::make_unique<Memory>(gpu_, bytes));
    return memory_.back()->data();
  }
  std::vector<Buffer> with_zeros(const std::vector<Spec>& specs) {
    std::vector<Buffer> all;
    for (const Spec& spec : specs) all.push_back({allocate(spec.bytes()), spec});
    return all;
  }
  std::vector<Buffer> with_numbers(const std::vector<Spec>& specs, DType dtype) {
    std::vector<Buffer> all = with_zeros(specs);
    for (const Buffer& each : all)
      static_cast<void>(for_floating(dtype, [&](auto type) -> Status {
        using T = decltype(type);
        std::vector<T> values(static_cast<std::size_t>(each.elements()));
        for (std::size_t i = 0; i < values.size(); ++i)
          values[i] = static_cast<T>(0.01f * static_cast<float>(i * 37 % 41) - 0.2f);
        require(gpu_.backend().copy_in(&gpu_.stream(), each.data, values.data(),
                                       values.size() * sizeof(T)),
                "to copy numbers");
        return {};
      }));
    return all;
  }
  void set(Pass& pass, Kernel run, PrepareRule prepare, std::size_t workspace_bytes) {
    pass.prepared = prepare(query(specs(pass.inputs), specs(pass.outputs)));
    pass.launch = {.run = run,
                   .context = {.inputs = pass.inputs,
                               .outputs = pass.outputs,
                               .attributes = &attributes_,
                               .workspace = allocate(workspace_bytes),
                               .prepared = pass.prepared.get(),
                               .stream = &gpu_.stream()},
                   .name = "lstm"};
  }

  Gpu& gpu_;
  const Attributes attributes_;
  std::vector<std::unique_ptr<Memory>> memory_;
  Pass forward_, backward_;
};

Json compare(Gpu& gpu, const LstmStack& stack, DType dtype) {
  Lstm lstm(gpu, stack, dtype);
  const std::vector<Launch> launches = lstm.launches();
  Json told = {{"of", stack.example}, {"dtype", name(dtype)}, {"way", lstm.way()}};
  const auto run = [&] { require(gpu.backend().run(&gpu.stream(), launches).status, "to run"); };
  run();
  const std::vector<std::byte> plain = lstm.take_results();
  const char* problem = nullptr;
  const std::unique_ptr<Capture> capture = gpu.backend().capture(&gpu.stream(), launches, problem);
  told["is_captured"] = capture != nullptr;
  if (!capture) {
    told["why_not"] = problem;
    return told;
  }
  const auto replay = [&] { require(gpu.backend().replay(&gpu.stream(), *capture), "to replay"); };
  replay();
  told["same_bits"] = lstm.take_results() == plain;
  const int count = kEmulated ? 1 : 20;
  told["microseconds"] = gpu.microseconds_in_stream(count, run);
  told["microseconds_captured"] = gpu.microseconds_in_stream(count, replay);
  return told;
}

#if EBB_HAS_CUDNN
Json bytes(const cuda::CudnnCallBytes& of) {
  return {{"weights", of.weights}, {"workspace", of.workspace}, {"reserve", of.reserve}};
}
#endif

}  // namespace

Json lstm_workspaces(Gpu& gpu) {
#if EBB_HAS_CUDNN
  const char* problem = nullptr;
  const cudnnHandle_t handle = gpu.stream().cudnn(problem);
  if (handle == nullptr) return {{"why_not", problem}};
  Json told = Json::array();
  for (const LstmStack& stack : kLstmStacks)
    for (const DType dtype : kDtypes)
      for (const bool training : {true, false}) {
        const RecurrentSizes size(input_of(stack, dtype), attributes_of(stack));
        const cuda::CudnnCallBytes declared(size, 0, training);
        cuda::CudnnLayers described(size, 0);
        const bool is_within = described.describe(
            handle, training ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE, declared);
        told.push_back({{"of", stack.example},
                        {"dtype", name(dtype)},
                        {"training", training},
                        {"is_within", is_within},
                        {"is_persistent", described.is_persistent()},
                        {"asked", bytes(described.needs())},
                        {"declared", bytes(declared)}});
      }
  return told;
#else
  static_cast<void>(gpu);
  return "built without cuDNN's headers";
#endif
}

Json lstm_capture(Gpu& gpu) {
  Json told = Json::array();
  for (const DType dtype : kDtypes)
    for (const LstmStack& stack : kLstmStacks) {
      // The emulated device computes thread by thread: one small stack shows that it works.
      const LstmStack here =
          kEmulated ? LstmStack{"8 to 2x16, 6 steps, batch 4", 4, 6, 8, 16, 2} : stack;
      told.push_back(attempt([&] { return compare(gpu, here, dtype); }));
      if (kEmulated) break;
    }
  return told;
}

}  // namespace ebb::facts
