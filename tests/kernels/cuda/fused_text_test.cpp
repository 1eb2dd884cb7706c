// NVRTC compiles the text of every pointwise operator, for every GPU. Needs a toolkit, no GPU.
#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "ebb/core/kernels/compare.h"
#include "ebb/core/kernels/functors/families.h"
#include "ebb/core/kernels/integers.h"
#include "ebb/kernels/cuda/plans/fused_text.h"
#include "ebb/tests/catch.h"

namespace ebb::cuda {
namespace {

constexpr DType kFloating[] = {DType::f32, DType::f64, DType::f16, DType::bf16};
constexpr DType kIntegers[] = {DType::i32, DType::i64, DType::u8};

// A chain whose steps read its inputs: [2, 3, 4] and five shapes that broadcast to it.
struct Chain {
  FusedChain chain;
  std::vector<Spec> inputs;
  Spec out;

  Chain(DType a, DType b, DType c) {
    for (const DType dtype : {a, b, c}) inputs.push_back({dtype, {2, 3, 4}});
    for (const Shape& shape : {Shape{}, Shape{4}, Shape{3, 1}, Shape{2, 1, 4}})
      inputs.push_back({a, shape});
    chain.broadcast_to.assign(inputs.size(), {2, 3, 4});
  }
  void add(Kernel run, DType result, std::vector<std::uint8_t> operands,
           Attributes attributes = {}) {
    FusedStep step{.run = run, .name = "a step", .attributes = attributes, .dtype = result};
    for (const std::uint8_t operand : operands) step.operands[step.count++] = operand;
    chain.steps.push_back(step);
    out = {result, {2, 3, 4}};
  }
  // The last value.
  std::uint8_t last() const {
    return static_cast<std::uint8_t>(inputs.size() + chain.steps.size() - 1);
  }
};

struct Of {
  Kernel run;
  int operands;
  bool takes_number;
};
const std::vector<Of>& applied() {
  static const std::vector<Of> all = {
#define EBB_UNARY(name, F) {map<functors::F>, 1, false},
#define EBB_BINARY(name, F) {zip<functors::F>, 2, true},
#define EBB_PAIR(name, F) {pair<functors::F>, 2, false},
#include "ebb/core/kernels/functors/families.inc"
  };
  return all;
}

std::vector<Chain> all_chains() {
  std::vector<Chain> all;
  // Begins a chain for each dtype, and another one where that is full.
  const auto add = [&](bool is_first, DType dtype, const auto& put) {
    if (is_first || all.back().chain.steps.size() > 9)
      all.emplace_back(dtype, dtype, DType::boolean);
    put(all.back());
  };
  const NumberOperand numbers[] = {{2.5, NumberOperand::left}, {2.5, NumberOperand::right}};
  for (const DType dtype : kFloating) {
    bool is_first = true;
    for (const Of& of : applied()) {
      add(std::exchange(is_first, false), dtype, [&](Chain& to) {
        if (of.operands == 1) to.add(of.run, dtype, {to.last()});
        if (of.operands == 2) to.add(of.run, dtype, {to.last(), 5});
        for (const NumberOperand& number : numbers)
          if (of.takes_number) to.add(of.run, dtype, {to.last()}, number);
      });
    }
  }
  for (const DType dtype : kIntegers)
    for (std::size_t operation = 0; operation < kIntegerOperations; ++operation)
      add(operation == 0, dtype, [&](Chain& to) {
        to.add(integers, dtype, {0, 4},
               NumberAndOperation{{}, static_cast<std::int64_t>(operation)});
        to.add(integers, dtype, {0},
               NumberAndOperation{{7, NumberOperand::left}, static_cast<std::int64_t>(operation)});
      });
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64,
                            DType::u8, DType::boolean}) {
    all.emplace_back(dtype, dtype, DType::boolean);
    Chain& compared = all.back();
    for (std::int64_t operation = 0; operation < 6; ++operation) {
      compared.add(compare, DType::boolean, {0, 3}, NumberAndOperation{{}, operation});
      compared.add(compare, DType::boolean, {0}, NumberAndOperation{numbers[0], operation});
    }
    if (is_floating(dtype))
      for (const Comparison of : {Comparison::is_nan, Comparison::is_inf, Comparison::is_finite})
        compared.add(compare, DType::boolean, {0},
                     NumberAndOperation{{}, static_cast<std::int64_t>(of)});
    all.emplace_back(dtype, dtype, DType::boolean);
    Chain& others = all.back();
    others.add(where, dtype, {2, 0, 4});
    others.add(where, dtype, {2, 0}, numbers[0]);
    others.add(where, dtype, {2, 5}, numbers[1]);
    others.add(fill, dtype, {}, FillAttributes{1});
    for (int to = 0; to < 8; ++to)
      if (static_cast<DType>(to) != dtype) others.add(cast, static_cast<DType>(to), {0});
    if (dtype != DType::f32 && dtype != DType::f64) continue;
    for (const Kernel step : {map<functors::Exp>, map<functors::Gelu>, map<functors::Sin>}) {
      Chain& summed = all.emplace_back(dtype, dtype, DType::boolean);
      for (const int input : {0, 3, 5, 6})
        summed.add(zip<functors::Multiply>, dtype,
                   {summed.last(), static_cast<std::uint8_t>(input)});
      summed.add(step, dtype, {summed.last()});
      summed.chain.sum = Reduction{.axes = 6};
      summed.chain.summed = std::exchange(summed.out.shape, {2});
    }
  }
  return all;
}

// The functions of NVRTC, loaded.
struct Nvrtc {
  void* library = nullptr;

  Nvrtc() {
    const char* const chosen = std::getenv("EBB_NVRTC_LIBRARY");
    for (const char* name : {chosen, "libnvrtc.so.13", "/usr/local/cuda/lib64/libnvrtc.so.13"})
      if (library == nullptr && name != nullptr) library = ::dlopen(name, RTLD_NOW);
  }
  template <class... Arguments>
  int call(const char* name, Arguments... arguments) const {
    auto* const function =
        reinterpret_cast<int (*)(Arguments...)>(::dlsym(library, name));  // NOLINT
    REQUIRE(function != nullptr);
    return function(arguments...);
  }
  template <class... Arguments>
  void operator()(const char* name, Arguments... arguments) const {
    INFO(name);
    REQUIRE(call(name, arguments...) == 0);
  }
};

}  // namespace

TEST_CASE("NVRTC compiles every pointwise operator for every GPU") {
  const Nvrtc nvrtc;
  if (nvrtc.library == nullptr) return;
  const char* const architectures[] = {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100"};
  std::size_t next = 0;
  for (const Chain& chain : all_chains()) {
    const std::string text = fused_text(chain.chain, chain.inputs, chain.out).text;
    INFO(text);
    void* program = nullptr;
    const std::string architecture =
        std::string("--gpu-architecture=") + architectures[next++ % std::size(architectures)];
    const char* const options[] = {architecture.c_str(), "--std=c++20", "--device-int128",
                                   "--device-as-default-execution-space"};
    nvrtc("nvrtcCreateProgram", &program, text.c_str(), "fused.cu", kHeaderCount, &kHeaderTexts[0],
          &kHeaderNames[0]);
    const int compiled = nvrtc.call("nvrtcCompileProgram", program, 4, &options[0]);
    char log[20'000] = "";
    if (compiled != 0) nvrtc("nvrtcGetProgramLog", program, &log[0]);
    INFO(log);
    REQUIRE(compiled == 0);
    std::size_t bytes = 0;
    nvrtc("nvrtcGetCUBINSize", program, &bytes);
    CHECK(bytes > 0);
    nvrtc("nvrtcDestroyProgram", &program);
  }
}

}  // namespace ebb::cuda
