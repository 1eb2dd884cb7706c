// Bytes that operators keep for their gradients, beyond inputs that exist anyway. No more than
// PyTorch 2 keeps, except one more tensor for weights of positives; less in cases that say so.
// MEMORY.md, row 7.
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/eager/bytes.h"

using namespace ebb;
using ebb::tests::Bytes;

namespace {

constexpr std::int64_t kSide = 64;
constexpr std::size_t kMatrix = kSide * kSide * 4, kRowBytes = 512;  // a row takes a block

// Leaves and constants on a device.
struct Given {
  explicit Given(Device where) : device(std::move(where)) {}
  Tensor full(const Shape& shape, double value = 1, DType dtype = DType::f32) const {
    return Tensor::full(shape, value, dtype, device);
  }
  Tensor leaf(const Shape& shape = {kSide, kSide}) const { return full(shape).with_grad(); }

  const Device device;
  const Tensor x = leaf(), row = leaf({kSide}), other = full({kSide, kSide}, 0.5),
               images = leaf({4, 16, 8, 8}),  // as large as x
      kernels = leaf({16, 16, 3, 3}), channels = leaf({16}), labels = full({kSide}, 0, DType::i64),
               mask = full({kSide, kSide}, 1, DType::boolean), constant_row = full({kSide});
  const Tensor running = full({16}), columns = full({kSide, 1}, 0, DType::i64),
               sequences = leaf({8, 8, kSide}), lengths = full({8}, 3, DType::i64);
  const LstmWeights weights{leaf({kSide, 4 * kSide}), leaf({kSide, 4 * kSide}), leaf({4 * kSide})};
};

struct Case {
  const char* name;
  std::size_t bytes;  // the result included
  std::function<Tensor(const Given&)> apply;
};

// A case's operator, applied to `in`.
#define CALL(...) [](const Given& in) { return __VA_ARGS__; }

const Case kCases[] = {
    {"products with numbers", kMatrix, CALL(in.x * 2 + 1)},
    {"conv2d", kMatrix, CALL(conv2d(in.images, in.kernels, in.channels, {.padding = 1}))},
    {"conv_transpose2d", kMatrix,
     CALL(conv_transpose2d(in.images, in.kernels, in.channels, {.padding = 1}))},
    // Keeps no indices; PyTorch keeps 8 bytes for each output.
    {"max_pool2d", kMatrix / 4, CALL(max_pool2d(in.images))},
    {"avg_pool2d", kMatrix / 4, CALL(avg_pool2d(in.images))},
    // Keeps a number for each query.
    {"scaled_dot_product_attention", kMatrix + kRowBytes,
     CALL(scaled_dot_product_attention(in.x, in.x, in.x, {.mask = in.mask}))},
    // Keeps mean and deviation.
    {"layer_norm", kMatrix + 2 * kRowBytes, CALL(layer_norm(in.x, in.row, in.row))},
    {"rms_norm", kMatrix + kRowBytes, CALL(rms_norm(in.x, in.row))},
    {"group_norm", kMatrix + 2 * kRowBytes,
     CALL(group_norm(in.images, 4, in.channels, in.channels))},
    {"batch_norm", kMatrix + 2 * kRowBytes,
     CALL(batch_norm(in.images, in.channels, in.channels, in.running, in.running,
                     {.phase = Phase::training}))},
    {"batch_norm that is not trained", kMatrix,
     CALL(batch_norm(in.images, in.channels, in.channels, in.running, in.running))},
    // Keeps the scores themselves, which are there anyway; PyTorch keeps their log_softmax.
    {"softmax_cross_entropy", kRowBytes, CALL(softmax_cross_entropy(in.x, in.labels))},
    // Keeps the total of the weights.
    {"softmax_cross_entropy with weights", 2 * kRowBytes,
     CALL(softmax_cross_entropy(in.x, in.labels, {.weights = in.constant_row}))},
    {"softmax_cross_entropy of probabilities", kRowBytes,
     CALL(softmax_cross_entropy(in.x, in.other))},
    {"binary_cross_entropy_with_logits", kRowBytes,
     CALL(binary_cross_entropy_with_logits(in.x, in.other))},
    // Keeps -x, the input of softplus.
    {"binary_cross_entropy_with_logits with weights of positives", kMatrix + 2 * kRowBytes,
     CALL(binary_cross_entropy_with_logits(in.x, in.other, {.positive_weight = in.constant_row}))},
    {"mae", kRowBytes, CALL(mae(in.x, in.other))},
    {"huber", kRowBytes, CALL(huber(in.x, in.other))},
    {"embedding", kMatrix, CALL(embedding(in.x, in.labels))},
    {"gather", kRowBytes, CALL(gather(in.x, 1, in.columns))},
    {"where", kMatrix, CALL(where(in.mask, in.x, in.other))},
    {"masked_fill", kMatrix, CALL(masked_fill(in.x, in.mask, 0))},
    // Keeps the indices, of 8 bytes each.
    {"sort", 3 * kMatrix, CALL(sort(in.x))},
    {"topk", 3 * kMatrix / 16, CALL(topk(in.x, 4).values)},
    {"cumsum", kMatrix, CALL(cumsum(in.x, 1))},
    {"cumprod", kMatrix, CALL(cumprod(in.x, 1))},
    {"max", kRowBytes, CALL(max(in.x, 1))},
    {"variance", kRowBytes, CALL(variance(in.x, 1))},
    {"logsumexp", kRowBytes, CALL(logsumexp(in.x, 1))},
    {"norm", kRowBytes, CALL(norm(in.x, {.axes = {1}}))},
    // Keeps the gates and cells of each step, where PyTorch keeps 17 matrices.
    {"lstm with lengths", 6 * kMatrix,
     CALL(lstm(in.sequences, {&in.weights, 1}, {.lengths = in.lengths}).sequence)},
    // Keeps no mask, which is drawn again.
    {"dropout", kMatrix + kRowBytes, CALL(dropout(in.x, 0.5, Phase::training))},
};

}  // namespace

TEST_CASE("operators keep for their gradients what their tables say", "[row7]") {
  for (const Device& device : {Device::cpu(), Device::cpu().twin()})
    for (const Case& each : kCases) {
      CAPTURE(device.name(), each.name);
      const Given inputs(device);
      const Bytes bytes(device);
      const Tensor y = each.apply(inputs);
      CHECK(bytes.now() == each.bytes);
    }
}
