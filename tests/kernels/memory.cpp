// Workspace depends neither on the batch nor on the length.
#include <array>

#include "ebb/core/kernels/attention.h"
#include "ebb/core/kernels/conv.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/recurrent.h"
#include "ebb/core/ops/conv.h"
#include "ebb/tests/catch.h"

using namespace ebb;

// Workspace of a 3x3 convolution of `channels` to `filters` in each group, and of its two
// gradients.
static std::array<std::size_t, 3> conv_workspaces(DType dtype, std::int64_t images,
                                                  std::int64_t channels, std::int64_t filters,
                                                  std::int64_t size, std::int64_t groups = 1) {
  const Attributes attributes = ConvAttributes{.padding = {1, 1}, .groups = groups};
  const Spec x{dtype, {images, channels * groups, size, size}},
      weights{dtype, {filters * groups, channels, 3, 3}},
      y{dtype, {images, filters * groups, size, size}};
  const auto needs = [&](const OpDef& op, std::vector<Spec> inputs, const Spec& output) {
    return op.cpu.memory({.inputs = inputs, .outputs = {&output, 1}, .attributes = &attributes})
        .workspace_bytes;
  };
  return {needs(conv2d_op, {x, weights}, y), needs(conv2d_input_gradient_op, {y, weights, x}, x),
          needs(conv2d_weight_gradient_op, {x, y, weights}, weights)};
}

TEST_CASE("the workspace of convolutions does not grow with the images") {
  for (const std::int64_t size : {8, 64, 256}) {
    const auto few = conv_workspaces(DType::f32, 64, 16, 32, size);
    CHECK(few == conv_workspaces(DType::f32, 4096, 16, 32, size));
    for (const std::size_t bytes : few) CHECK(bytes <= std::size_t{8} << 20);
  }
}

TEST_CASE("fewer images never take more workspace of convolutions") {
  for (const DType type : {DType::f32, DType::f64, DType::bf16})
    for (const auto& [channels, filters, size, groups] : {std::array{64, 16, 32, 1},
                                                          {3, 16, 64, 1},
                                                          {17, 16, 9, 1},
                                                          {200, 16, 8, 1},
                                                          {200, 200, 4, 1},
                                                          {64, 16, 32, 2},
                                                          {40, 16, 3, 5},
                                                          {1, 16, 24, 64}}) {
      CAPTURE(name(type), channels, filters, size, groups);
      std::array<std::size_t, 3> before = {};
      for (std::int64_t images = 0; images < 40; ++images) {
        CAPTURE(images);
        const auto bytes = conv_workspaces(type, images, channels, filters, size, groups);
        for (std::size_t i = 0; i < 3; ++i) CHECK(bytes[i] >= before[i]);
        before = bytes;
      }
    }
}

TEST_CASE("the memory of attention is linear in the length, and does not grow with the keys") {
  const auto bytes = [](std::int64_t length, bool is_backward) {
    const Spec x{DType::f32, {8, length, 64}}, lse{DType::f32, {8, length}};
    const Attributes attributes = AttentionAttributes{};
    const std::vector<Spec> inputs =
        is_backward ? std::vector<Spec>{x, x, x, x, lse, x} : std::vector<Spec>{x, x, x};
    const std::vector<Spec> outputs =
        is_backward ? std::vector<Spec>{x, x, x} : std::vector<Spec>{x, lse};
    const MemoryRule rule = is_backward ? cpu::attention_backward_memory : cpu::attention_memory;
    return rule({.inputs = inputs, .outputs = outputs, .attributes = &attributes}).workspace_bytes;
  };
  for (const bool is_backward : {false, true}) {
    CHECK(bytes(1 << 12, is_backward) == bytes(1 << 20, is_backward));
    CHECK(bytes(1 << 20, is_backward) <= std::size_t{3} << 20);
    // Of few positions no tile is larger than their scores.
    const std::size_t scores = 23 * 23 * (is_backward ? 2 : 1) + 2 * 23;
    CHECK(bytes(23, is_backward) <= 8 * (scores * sizeof(float) + 3 * 64));
  }
}

TEST_CASE("the workspace of a stack does not grow with its sequence, and is less in its reserve") {
  constexpr std::int64_t kRows = 32, kIn = 8, kHidden = 48, kLayers = 2;
  for (const RecurrentCell cell : {RecurrentCell::lstm, RecurrentCell::gru}) {
    const RecurrentAttributes how{.layers = kLayers, .hidden = kHidden, .d_given = 1, .cell = cell};
    const Attributes attributes = how;
    const auto bytes = [&](std::int64_t time) {
      const std::int64_t columns = (how.has_cell() ? 4 : 3) * kHidden;
      std::vector<Spec> in = {{DType::f32, {kRows, time, kIn}}};
      for (std::int64_t layer = 0; layer < kLayers; ++layer) {
        in.push_back({DType::f32, {layer == 0 ? kIn : kHidden, columns}});
        in.push_back({DType::f32, {kHidden, columns}});
        in.push_back({DType::f32, {4 * kHidden}});
      }
      const Spec sequence{DType::f32, {kRows, time, kHidden}};
      const MemoryNeeds forward =
          cpu::recurrent_memory({.inputs = in, .outputs = {}, .attributes = &attributes});
      std::vector<Spec> back = {{DType::u8, {static_cast<std::int64_t>(forward.reserve_bytes)}},
                                sequence};
      back.insert(back.end(), in.begin(), in.end());
      back.push_back(sequence);
      const IndexSet reserve{kRecurrentBackwardReserve};
      const auto backward = [&](const IndexSet* destroyed) {
        return cpu::recurrent_backward_memory({.inputs = back,
                                               .outputs = in,
                                               .attributes = &attributes,
                                               .destroyed = destroyed})
            .workspace_bytes;
      };
      return std::array{forward.workspace_bytes, backward(nullptr), backward(&reserve)};
    };
    CHECK(bytes(64) == bytes(200));
    CHECK(bytes(64)[2] < bytes(64)[1]);
  }
}
