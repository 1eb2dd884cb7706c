#include "ebb/core/kernels/layout.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/ops/samples.h"

namespace ebb::tests {

void add_layout_samples(std::vector<Sample>& samples) {
  const auto permuted = [&](const char* how, const Shape& shape, const Axes& axes) {
    samples.push_back(moving_sample(permute_op, how, {{shape}},
                                    [axes](const Tensors& in) { return permute(in[0], axes); }));
  };
  permuted("a matrix", {kOpen, 5}, {1, 0});
  permuted("whole tiles and parts", {40, 35}, {1, 0});
  permuted("the batch inside", {kOpen, 2, 3}, {1, 2, 0});
  permuted("the batch further inside", {kOpen, 2, 3}, {1, 0, -1});
  permuted("all axes backwards", {2, kOpen, 3, 1, 4}, {4, 3, 2, 1, 0});
  permuted("axes of size 1", {1, kOpen, 1}, {2, 1, 0});
  permuted("nothing", {4, 0, 3}, {2, 0, 1});
  samples.push_back(moving_sample(permute_op, "the last two", {{{3, kOpen, 20}}},
                                  [](const Tensors& in) { return transpose(in[0]); }));
  samples.push_back(moving_sample(permute_op, "the outer two", {{{3, kOpen, 2}}},
                                  [](const Tensors& in) { return transpose(in[0], 1, 0); }));

  const auto joined = [&](const char* how, std::vector<SampleInput> inputs, int axis) {
    samples.push_back(moving_sample(concat_op, how, std::move(inputs),
                                    [axis](const Tensors& in) { return concat(in, axis); }));
  };
  joined("batches", {{{kOpen, 3}}, {{2, 3}}, {{kOpen, 3}}}, 0);
  joined("features", {{{kOpen, 3}}, {{kOpen, 1}}, {{kOpen, 4}}}, -1);
  joined("a middle axis", {{{kOpen, 2, 3}}, {{kOpen, 1, 3}}}, 1);
  joined("with nothing between", {{{2, 2}}, {{2, 0}}, {{2, 3}}}, 1);
  joined("one alone", {{{kOpen, 2}}}, 0);
  samples.back().any_shape = true;
  joined("nothing", {{{0, 2}}, {{0, 3}}}, 1);
  samples.push_back(moving_sample(concat_op, "stacked", {{{kOpen, 3}}, {{kOpen, 3}}},
                                  [](const Tensors& in) { return stack(in, -1); }));
  samples.push_back(
      moving_sample(concat_op, "many", {{{kOpen, 1}}, {{kOpen, 2}}}, [](const Tensors& in) {
        Tensors all;
        for (int i = 0; i < 70; ++i) all.push_back(in[static_cast<std::size_t>(i % 2)]);
        return concat(all, 1);
      }));
  const auto parts = [&](const char* how, std::vector<SampleInput> inputs, std::int64_t axis,
                         std::vector<int> read) {
    Sample sample = moving_sample(concat_backward_op, how, std::move(inputs), nullptr);
    sample.call = [axis, read](const Tensors& in) {
      InlineVector<Input, 8> all(in.begin(), in.end());
      Tensors results =
          apply(concat_backward_op, {all.data(), all.size()}, ConcatAttributes{axis}, {});
      Tensors wanted;
      for (const int i : read) wanted.push_back(results[static_cast<std::size_t>(i)]);
      return wanted;
    };
    samples.push_back(std::move(sample));
  };
  parts("features", {{{kOpen, 8}}, {{kOpen, 3}}, {{kOpen, 1}}, {{kOpen, 4}}}, 1, {0, 1, 2});
  parts("some of the batches", {{{8, 2}}, {{2, 2}}, {{1, 2}}, {{5, 2}}}, 0, {1});
  parts("of a middle axis", {{{2, 5, kOpen}}, {{2, 1, kOpen}}, {{2, 4, kOpen}}}, 1, {1, 0});

  const auto padded = [&](const char* how, const Shape& shape,
                          const InlineVector<Padding, kMaxRank>& axes, double value) {
    samples.push_back(moving_sample(pad_op, how, {{shape}}, [axes, value](const Tensors& in) {
      return pad(in[0], axes, value);
    }));
  };
  padded("rows", {kOpen, 3}, {{2, 1}, {0, 0}}, 0);
  padded("columns", {kOpen, 3}, {{0, 0}, {0, 2}}, -1.5);
  padded("images", {2, kOpen, 3}, {{0, 0}, {1, 2}, {1, 0}}, 0.25);
  padded("a middle axis of 1", {2, 1, kOpen}, {{0, 0}, {1, 1}, {0, 0}}, 1);
  padded("all of five axes", {2, 1, kOpen, 2, 3}, {{1, 0}, {0, 1}, {1, 1}, {0, 2}, {2, 0}}, 3);
  padded("by nothing", {kOpen, 2}, {{0, 0}, {0, 0}}, 7);
  padded("nothing", {0, 2}, {{1, 2}, {0, 1}}, 4);

  const auto broadcast = [&](const char* how, const Shape& shape, const Shape& to) {
    samples.push_back(moving_sample(broadcast_to_op, how, {{shape}},
                                    [to](const Tensors& in) { return broadcast_to(in[0], to); }));
    samples.back().any_shape = true;
  };
  broadcast("a row", {3}, {4, 3});
  broadcast("a column", {kOpen, 1}, {-1, 5});
  broadcast("a middle axis", {2, 1, kOpen}, {3, 2, 2, -1});
  broadcast("a scalar", {}, {2, 3});
  broadcast("to nothing", {1, 2}, {0, 2});
  broadcast("what has the shape", {kOpen, 2}, {-1, 2});
  samples.push_back(moving_sample(broadcast_to_op, "tiled", {{{kOpen, 3}}},
                                  [](const Tensors& in) { return tile(in[0], 2, 1); }));
  samples.push_back(moving_sample(broadcast_to_op, "repeated", {{{kOpen, 3}}},
                                  [](const Tensors& in) { return repeat(in[0], 2); }));
}

}  // namespace ebb::tests
