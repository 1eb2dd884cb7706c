// Compares the workspace that ebb declares for convolutions and attention with the plans of cuDNN
// itself, for four kinds of GPU, on a machine without any. cuDNN 9.8 or newer takes a device's
// properties as JSON; the keys are those that it asks for, the values those of the data sheets.
//
//   EBB_CUDNN_LIBRARY=.../libcudnn.so.9 cudnn_workspaces [shapes, 500]
//
// A line for each GPU, dtype and pass: how many shapes have cuDNN's first plan that ebb may take,
// another one, a plan without tensor cores where the first has them, or none; the MB that ebb
// declares for them, and the MB that the plans use. Then the shapes that fare worst.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ebb/kernels/cuda/cudnn_operations.h"
#include "ebb/kernels/cuda/plans/attention_plan.h"

using namespace ebb;
using namespace ebb::cuda;

namespace {

struct Kind {
  const char* name;
  int capability, multiprocessors, shared, reserved, blocks, threads;
  long l2, memory;
};
constexpr Kind kKinds[] = {
    {"Tesla T4", 75, 40, 65536, 0, 16, 1024, 4 << 20, 15835660288},
    {"NVIDIA A100-SXM4-40GB", 80, 108, 166912, 1024, 32, 2048, 40 << 20, 42298834944},
    {"NVIDIA GeForce RTX 4090", 89, 128, 101376, 1024, 24, 1536, 72 << 20, 25393692672},
    {"NVIDIA H100 80GB HBM3", 90, 132, 232448, 1024, 32, 2048, 50 << 20, 85000000000},
};

std::string json_of(const Kind& kind) {
  const auto number = [](const char* key, long value) {
    return std::string("\"") + key + "\":" + std::to_string(value) + ",";
  };
  return std::string("{\"deviceName\":\"") + kind.name + "\"," +
         "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64]," +
         number("regsPerBlock", 65536) + number("multiProcessorCount", kind.multiprocessors) +
         number("warpSize", 32) + number("maxSharedMemoryPerBlock", 49152) +
         number("maxSharedMemoryPerBlockOptin", kind.shared) +
         number("reservedSharedMemoryPerBlock", kind.reserved) +
         number("maxRegistersPerSM", 65536) + number("maxCtasPerSM", kind.blocks) +
         number("maxThreadsPerBlock", 1024) + number("maxThreadsPerSM", kind.threads) +
         number("pciDeviceId", 0) + number("isTccDriver", 0) + number("supportCoopLaunch", 1) +
         number("totalGlobalMem", kind.memory) + number("smClockRateKHz", 1600000) +
         number("memClockRateKHz", 2600000) + number("l2CacheSize", kind.l2) +
         number("cudaDeviceId", 0) + number("deviceVer", 10 * kind.capability) +
         "\"driverVer\":13000}";
}

struct Case {
  std::int64_t images, channels, height, width, filters, kernel, stride, padding, dilation, groups;
  auto operator<=>(const Case&) const = default;

  std::int64_t taps_high() const { return height == 1 ? 1 : kernel; }
  std::int64_t padding_high() const { return height == 1 ? 0 : padding; }
  std::int64_t places(std::int64_t size, std::int64_t taps, std::int64_t pad) const {
    return (size + 2 * pad - dilation * (taps - 1) - 1) / stride + 1;
  }
  bool is_possible() const {
    return channels % groups == 0 && filters % groups == 0 &&
           height + 2 * padding_high() > dilation * (taps_high() - 1) &&
           width + 2 * padding > dilation * (kernel - 1);
  }
  ConvLayout layout() const {
    ConvAttributes attributes{.groups = groups};
    for (int side = 0; side < 2; ++side) {
      attributes.stride[side] = side == 0 && height == 1 ? 1 : stride;
      attributes.padding[side] = side == 0 ? padding_high() : padding;
      attributes.dilation[side] = dilation;
    }
    return {{images, channels, height, width},
            {filters, channels / groups, taps_high(), kernel},
            {images, filters, height == 1 ? 1 : places(height, kernel, padding),
             places(width, kernel, padding)},
            attributes};
  }
};

// Layers of well-known networks, then convolutions by chance. A height of 1: of one axis.
std::vector<Case> shapes(std::size_t count) {
  std::vector<Case> all;
  for (const std::int64_t n : {1, 32, 128}) {  // ResNets
    all.push_back({n, 3, 224, 224, 64, 7, 2, 3, 1, 1});
    for (const auto& [c, size] : {std::pair{64, 56}, {128, 28}, {256, 14}, {512, 7}})
      for (const Case& each :
           {Case{n, c, size, size, c, 3, 1, 1, 1, 1}, Case{n, c, size, size, 4 * c, 1, 1, 0, 1, 1},
            Case{n, 4 * c, size, size, c, 1, 1, 0, 1, 1},
            Case{n, c, size, size, 2 * c, 3, 2, 1, 1, 1},
            Case{n, c, size, size, 2 * c, 1, 2, 0, 1, 1}})
        all.push_back(each);
    for (const auto& [c, k] : {std::pair{3, 16}, {3, 64}, {16, 16}, {64, 64}, {64, 128}})
      all.push_back({n, c, 32, 32, k, 3, 1, 1, 1, 1});
    all.push_back({n, 1, 28, 28, 6, 5, 1, 2, 1, 1});
    all.push_back({n, 6, 14, 14, 16, 5, 1, 0, 1, 1});
    all.push_back({n, 1, 8, 8, 8, 3, 1, 1, 1, 1});
    for (const auto& [c, size] : {std::pair{32, 112}, {144, 56}, {192, 28}, {960, 7}})
      all.push_back({n, c, size, size, c, 3, 1, 1, 1, c});
    all.push_back({n, 256, 14, 14, 256, 3, 1, 1, 1, 32});
    all.push_back({n, 512, 4, 4, 1024, 4, 2, 1, 1, 1});
    all.push_back({n, 64, 1, 1024, 128, 3, 1, 1, 1, 1});
    all.push_back({n, 3, 224, 224, 768, 16, 16, 0, 1, 1});
  }
  std::mt19937_64 random(1);
  const auto any = [&](std::initializer_list<std::int64_t> of) {
    return of.begin()[random() % of.size()];
  };
  std::set<Case> known(all.begin(), all.end());
  while (all.size() < count) {
    Case one{any({1, 2, 4, 8, 16, 32, 64, 128, 256}),
             any({1, 3, 4, 6, 8, 12, 16, 20, 24, 32, 33, 48, 64, 96, 100, 128, 192, 256, 384, 512}),
             any({1, 4, 5, 7, 8, 9, 13, 14, 16, 17, 28, 30, 32, 40, 56, 64, 112, 128}),
             0,
             any({1, 2, 4, 8, 10, 16, 24, 32, 48, 64, 65, 96, 128, 192, 256, 384, 512}),
             any({1, 1, 3, 3, 3, 3, 5, 7, 2, 4}),
             any({1, 1, 1, 2, 2, 3}),
             0,
             any({1, 1, 1, 1, 2}),
             1};
    one.width = one.height == 1 ? any({16, 100, 500, 2048}) : any({one.height, 2 * one.height + 1});
    one.padding = any({0, one.dilation * (one.kernel - 1) / 2});
    if (random() % 8 == 0) one.groups = any({2, 4, one.channels});
    if (!one.is_possible()) continue;
    const ConvLayout of = one.layout();
    const std::int64_t most = std::max(one.channels * of.pixels(), one.filters * of.places());
    if (one.images * most > 1 << 27 ||
        one.images * one.filters * of.places() * of.depth() > std::int64_t{1} << 39)
      continue;
    if (known.insert(one).second) all.push_back(one);
  }
  all.resize(count);
  return all;
}

struct Way {
  const char* name;
  DType dtype;
  bool tf32;
};
constexpr Way kWays[] = {{"f32", DType::f32, false},
                         {"tf32", DType::f32, true},
                         {"f16", DType::f16, false},
                         {"bf16", DType::bf16, false}};
constexpr const char* kPasses[] = {"forward", "input gradient", "weight gradient"};

struct Row {
  int shapes = 0, first = 0, other = 0, without_cores = 0, none = 0;
  double declared = 0, used = 0;
  std::vector<std::pair<double, std::string>> worst = {};  // by the wasted MB
};

void compare(Row& row, const Case& shape, const Way& way, ConvPass pass, int capability,
             cudnnBackendDescriptor_t properties) {
  const ConvLayout layout = shape.layout();
  const CudnnOperation of =
      describe({pass, layout, way.dtype, false, way.tf32 && capability >= 80});
  const std::size_t limit = cudnn_limit(pass, layout, way.dtype, capability, way.tf32);
  CudnnPlan first, taken;
  const bool has_first =
      first.choose(of, std::numeric_limits<std::int64_t>::max(), {nullptr, properties});
  const bool is_within = has_first && first.workspace_bytes() <= limit;
  const CudnnPlan* plan = &first;
  if (!is_within)
    plan = has_first && taken.choose(of, limit, {nullptr, properties}) ? &taken : nullptr;
  const double declared = static_cast<double>(limit) / 1e6;
  const double used = plan ? static_cast<double>(plan->workspace_bytes()) / 1e6 : 0;
  ++row.shapes;
  ++(!plan ? row.none : is_within ? row.first : row.other);
  row.without_cores += plan && first.uses_tensor_cores() && !plan->uses_tensor_cores();
  row.declared += declared;
  row.used += used;
  char text[200];
  std::snprintf(text, sizeof(text),
                "x %ldx%ldx%ldx%ld, %ld filters %ldx%ld, groups %ld, stride %ld: %.1f MB declared, "
                "%.1f used, first %.1f",
                shape.images, shape.channels, shape.height, shape.width, shape.filters,
                shape.taps_high(), shape.kernel, shape.groups, shape.stride, declared, used,
                static_cast<double>(first.workspace_bytes()) / 1e6);
  row.worst.emplace_back(declared - used, text);
}

// How many plans there are for attention, and the most workspace of one. cuDNN compiles each, with
// NVRTC and a driver's library, which may be a stand-in whose modules are empty.
void tell_attention(cudnnBackendDescriptor_t properties, bool causal) {
  int shapes = 0, taken = 0;
  std::size_t most = 0;
  for (const std::int64_t length : {64, 100, 1024})
    for (const std::int64_t keys : {length, std::int64_t{77}})
      for (const auto& [depth, width] :
           {std::pair{8, 8}, {40, 40}, {64, 64}, {64, 128}, {128, 128}, {256, 256}}) {
        const Shape q{16, length, depth}, v{16, keys, width};
        CudnnPlan plan;
        ++shapes;
        if (!plan.choose(describe_attention({q, v}, DType::bf16, causal, length != 100),
                         std::size_t{1} << 40, {nullptr, properties}))
          continue;
        taken += plan.workspace_bytes() <= kAttentionWorkspace;
        most = std::max(most, plan.workspace_bytes());
      }
  std::printf("    attention, %s: %d shapes, %d plans within %zu bytes, %zu at most\n",
              causal ? "causal" : "full", shapes, taken, kAttentionWorkspace, most);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 500;
  if (cudnn() == nullptr) {
    std::puts("cuDNN was not found (EBB_CUDNN_LIBRARY may name its file)");
    return 1;
  }
  const std::vector<Case> all = shapes(count);
  std::printf("cuDNN %zu, %zu shapes\n%-26s %-5s %-16s %6s %6s %6s %6s %6s %9s %9s\n",
              cudnn()->cudnnGetVersion(), all.size(), "GPU", "", "", "shapes", "first", "other",
              "plain", "none", "declared", "used");
  for (const Kind& kind : kKinds) {
    const std::string json = json_of(kind);
    BackendDescriptor properties(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
    properties.set(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                   static_cast<std::int64_t>(json.size()), json.data());
    if (!properties.finalize()) {
      std::printf("%-26s is refused by this cuDNN\n", kind.name);
      continue;
    }
    for (const bool causal : {false, true})
      if (kind.capability >= 80) tell_attention(properties.get(), causal);
    for (const Way& way : kWays)
      for (const ConvPass pass :
           {ConvPass::forward, ConvPass::input_gradient, ConvPass::weight_gradient}) {
        if (kind.capability < 80 && (way.tf32 || way.dtype == DType::bf16)) continue;
        Row row;
        for (const Case& shape : all)
          compare(row, shape, way, pass, kind.capability, properties.get());
        std::printf("%-26s %-5s %-16s %6d %6d %6d %6d %6d %9.0f %9.0f\n", kind.name, way.name,
                    kPasses[static_cast<int>(pass)], row.shapes, row.first, row.other,
                    row.without_cores, row.none, row.declared, row.used);
        std::ranges::sort(row.worst, std::greater());
        for (std::size_t i = 0; i < std::min<std::size_t>(3, row.worst.size()); ++i)
          if (row.worst[i].first > 1) std::printf("    %s\n", row.worst[i].second.c_str());
        std::fflush(stdout);
      }
  }
}
