// Kernels give the same bits for any number of threads. An element gets the same bits whatever
// stands beside it.
#include <cstring>
#include <functional>

#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/attention.h"
#include "ebb/core/ops/conv.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/tests/bytes.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/kernels/threads.h"

namespace ebb::tests {
namespace {

Tensor noise(const Shape& shape, DType dtype = DType::f32) {
  return uniform(shape, {.low = 0.1, .high = 5, .dtype = dtype});
}

void check_threads_agree(const std::function<Tensor()>& call) {
  std::vector<std::byte> first;
  for (const int threads : {1, 2, 5}) {
    const Threads here(threads);
    const std::vector<std::byte> bits = bytes_of(call());
    if (threads == 1) first = bits;
    CHECK((bits == first));
  }
}

}  // namespace

TEST_CASE("Products are the same bits for any number of threads") {
  for (const DType dtype : {DType::f32, DType::f64}) {
    const Tensor a = noise({700, 90}, dtype), b = noise({90, 530}, dtype);
    check_threads_agree([&] { return matmul(a, b); });
    for (const std::int64_t rows : {7, 300}) {
      const Tensor c = noise({40, rows, 90}, dtype), d = noise({40, 90, rows}, dtype);
      check_threads_agree([&] { return matmul(c, d); });
    }
  }
}

TEST_CASE("Convolutions are the same bits for any number of threads") {
  for (const std::int64_t groups : {1, 3, 48}) {
    const Conv2dOptions options{.padding = 1, .groups = groups};
    const Tensor x = noise({17, 48, 4, 5}), w = noise({groups == 48 ? 48 : 96, 48 / groups, 3, 2});
    check_threads_agree([&] {
      const Tensor xs = x.with_grad(), ws = w.with_grad(), y = conv2d(xs, ws, options);
      const Tensors slopes = gradients(sum(y * y), {xs, ws});
      return concat({reshape(y, {-1}), reshape(slopes[0], {-1}), reshape(slopes[1], {-1})});
    });
  }
}

// The shapes make the kernels cut their work along the axis, along the axes behind it, or not at
// all.
TEST_CASE("What is added by number is the same bits for any number of threads") {
  for (const Shape& shape : {Shape{1, 70'000, 1}, Shape{1, 9000, 17}, Shape{2, 300, 500},
                             Shape{1, 3, 40'000}, Shape{500, 70, 2}})
    for (const std::int64_t chosen : {0, 1, 40}) {
      CAPTURE(shape.to_string(), chosen);
      const Shape parts{shape[0], chosen, shape[2]};
      const Tensor x = noise(shape), values = noise(parts);
      const Tensor elements = randint(0, shape[1], parts), rows = randint(0, shape[1], {chosen});
      check_threads_agree([&] { return scatter_add(x, 1, elements, values); });
      check_threads_agree([&] { return index_add(x, rows, values, 1); });
    }
}

TEST_CASE("What is permuted is the same bits for any number of threads") {
  for (const Axes& axes : {Axes{3, 0, 2, 1}, Axes{0, 1, 3, 2}, Axes{2, 3, 0, 1}}) {
    const Tensor x = noise({40, 3, 170, 65});
    check_threads_agree([&] { return permute(x, axes); });
  }
}

TEST_CASE("Attention's gradients are the same bits for any number of threads, and in any batch") {
  for (const bool causal : {false, true}) {
    CAPTURE(causal);
    const Tensor q = noise({2, 530, 20}) / 5, k = noise({2, 1100, 20}), v = noise({2, 1100, 3});
    const auto gradients_of = [&](Tensors x) {
      for (Tensor& each : x) each = each.with_grad();
      const Tensor y = scaled_dot_product_attention(x[0], x[1], x[2], {.causal = causal});
      Tensors all = gradients(sum(y * y), x);
      for (Tensor& each : all) each = reshape(slice(each, 0, 1), {-1});
      return concat(all);
    };
    const Tensors few = {slice(q, 0, 1), slice(k, 0, 1), slice(v, 0, 1)};
    check_threads_agree([&] { return gradients_of(few); });
    CHECK((bytes_of(gradients_of({q, k, v})) == bytes_of(gradients_of(few))));
  }
}

TEST_CASE("A function gives an element the same bits at every length, and wherever it lies") {
  // Every listed function of one number. tests/ops checks their values.
  const OpDef* const functions[] = {
#define EBB_UNARY(name, Functor) &name##_op,
#define EBB_BINARY(name, Functor)
#define EBB_PAIR(name, Functor)
#include "ebb/core/kernels/functors/families.inc"
  };
  for (const OpDef* op : functions)
    for (const DType dtype : {DType::f32, DType::f64}) {
      const Tensor all = noise({70'001}, dtype);
      const std::vector<std::byte> expected = bytes_of(apply_one(*op, {all}, {}, {}));
      for (const std::int64_t first : {0, 1, 2, 5, 37})
        for (const std::int64_t n : {0, 1, 3, 4, 7, 8, 15, 16, 17, 100, 40'000}) {
          INFO(op->name << " " << name(dtype) << " " << n << " from " << first);
          const auto some = bytes_of(apply_one(*op, {slice(all, first, first + n)}, {}, {}));
          const std::size_t begin = static_cast<std::size_t>(first) * size_of(dtype);
          CHECK(std::memcmp(some.data(), expected.data() + begin, some.size()) == 0);
        }
    }
}

}  // namespace ebb::tests
