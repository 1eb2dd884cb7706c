#include <vector>

#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/eager/bytes.h"

using namespace ebb;
using ebb::tests::Bytes;
using memory::Category;

namespace {
constexpr std::size_t kBlock = 512;
constexpr std::int64_t kRow = kBlock / sizeof(float);  // floats in a block

Tensor leaf() { return Tensor::full({kRow}, 0.5).with_grad(); }
}  // namespace

TEST_CASE("a tensor's block is free at the end of its scope") {
  const Bytes bytes;
  {
    const Tensor a = Tensor::zeros({kRow});
    CHECK(bytes.now() == kBlock);
    {
      const Tensor b = a + a;
      CHECK(bytes.now() == 2 * kBlock);
    }
    CHECK(bytes.now() == kBlock);
    const Tensor handle = a;
    CHECK(bytes.now() == kBlock);
  }
  CHECK(bytes.now() == 0);
}

TEST_CASE("memory that is taken over counts in the category of what it holds now") {
  const Tensor w = leaf();
  const Bytes bytes;
  const std::size_t gradient = bytes.of(Category::gradient);
  const std::size_t temporary = bytes.of(Category::temporary);
  Tensor g = gradients(sum(square(w)), {w})[0];
  CHECK(bytes.of(Category::gradient) == gradient + kBlock);
  const Tensor scaled = std::move(g) * 2;
  CHECK(bytes.now() == kBlock);  // taken over
  CHECK(bytes.of(Category::gradient) == gradient);
  CHECK(bytes.of(Category::temporary) == temporary + kBlock);
  CHECK(scaled.item<float>({0}) == 2);
}

TEST_CASE("backward() frees the tape as it goes") {
  const Bytes bytes;
  const std::size_t activations = bytes.of(Category::activation);
  {
    const Tensor w = leaf();
    Tensor loss;
    {
      Tensor x = w;
      for (int i = 0; i < 10; ++i) x = tanh(x);
      loss = sum(x);
    }
    CHECK(bytes.now() == kBlock * (1 + 10 + 1));  // the leaf, what tanh keeps, the loss
    CHECK(bytes.of(Category::activation) == activations + 10 * kBlock);
    const Bytes pass;
    loss.backward();
    // Two blocks: the 1 that the pass starts with, and the gradient. Each record writes the next
    // gradient over the last one, and 1 - y^2 over y.
    CHECK(pass.peak() == 2 * kBlock);
    CHECK(bytes.now() == kBlock * 3);  // the leaf, its gradient, the loss
    CHECK(bytes.of(Category::activation) == activations);
    CHECK(w.grad().defined());
  }
  CHECK(bytes.now() == 0);
}

TEST_CASE("gradients accumulate in place") {
  const Tensor w = leaf();
  sum(w * 3).backward();
  const Tensor first = w.grad();
  const Bytes bytes;
  sum(w * 4).backward();
  CHECK(first.item<float>({0}) == 7);
  CHECK(bytes.now() == 0);
}

TEST_CASE("two leaves never share a gradient's memory") {
  for (const BackwardOptions& options :
       {BackwardOptions{}, {.retain_graph = true}, {.create_graph = true}}) {
    const Tensor a = leaf(), b = leaf(), c = leaf();
    sum((a + b) - (-c)).backward(options);
    CHECK(detail::data(a.grad()) != detail::data(b.grad()));
    CHECK(detail::data(a.grad()) != detail::data(c.grad()));
    CHECK(detail::data(b.grad()) != detail::data(c.grad()));
  }
}

TEST_CASE("of the updates in place only those since a tensor was kept make it stale") {
  const Tensor w = leaf();
  const Tensor x = Tensor::full({kRow}, 1);
  add_assign(x, 1);
  add_assign(x, 1);
  sum(w * x).backward();
  CHECK(w.grad().item<float>({0}) == 3);
  const Tensor loss = sum(w * x);
  add_assign(x, 1);
  CHECK_ERROR(loss.backward(), Error, "at version 2, but it has been updated in place");
}

TEST_CASE("a leaf whose gradient ends on the way has zeros, and one that is not on it none") {
  const Tensor x = Tensor::from({1.5f, -2.f}).with_grad(), y = Tensor::from({1.f, 2.f}).with_grad();
  const Tensor z = Tensor::from({1.f, 2.f}).with_grad();
  sum(round(x * 3) * y).backward();
  CHECK(x.grad().to_vector<float>() == std::vector<float>{0, 0});
  CHECK(y.grad().to_vector<float>() == std::vector<float>{4, -6});
  CHECK_FALSE(z.grad().defined());
  CHECK(gradients(sum(round(x)), x)[0].to_vector<float>() == std::vector<float>{0, 0});
  // An existing gradient stays when zeros arrive.
  sum(x * y).backward();
  sum(sign(x)).backward();
  CHECK(x.grad().to_vector<float>() == std::vector<float>{1, 2});
  // A gradient of zeros counts as gradient, and goes with zero_grad().
  const Bytes bytes;
  const auto held = [&] { return bytes.of(memory::Category::gradient); };
  x.zero_grad();
  const std::size_t before = held();
  sum(sign(x)).backward();
  CHECK(held() > before);
  x.zero_grad();
  CHECK(held() == before);
}

TEST_CASE(
    "the zeros of a gradient that ends on the way are like the leaf, and go with what fails") {
  const Tensor d = Tensor::from({1., 2.}).with_grad();
  sum(round(d)).backward();
  CHECK(d.grad().to_vector<double>() == std::vector<double>{0, 0});
  const Device there = Device::parse("sim:cpu:1GiB");
  const Tensor far = Tensor::zeros({2, 3}, DType::f32, there).with_grad();
  sum(round(far)).backward();
  CHECK(far.grad().device() == there);
  CHECK(far.grad().shape() == Shape{2, 3});

  const Tensor w = Tensor::from({4.f, 0.f}).with_grad(), root = sqrt(w);
  const Tensor x = leaf();  // after the root, whose gradient comes later
  const Tensor loss = sum(root * Tensor::from({1.f, 0.f})) + sum(round(x));
  const DetectNan detect;
  CHECK_ERROR(loss.backward(), NotANumber, ", in the gradient of sqrt");
  CHECK_FALSE(x.grad().defined());
}

TEST_CASE("a chain of a hundred thousand records is freed without recursion") {
  const Bytes bytes;
  {
    Tensor x = Tensor::full({1}, 1).with_grad();
    for (int i = 0; i < 100'000; ++i) x = x + 0.5;
  }
  CHECK(bytes.now() == 0);
  {
    const Tensor w = Tensor::full({1}, 1).with_grad();
    Tensor x = w;
    for (int i = 0; i < 100'000; ++i) x = x + 0.5;
    x.backward();
    CHECK(w.grad().item<float>() == 1);
  }
  CHECK(bytes.now() == 0);
}

TEST_CASE("backward of what has no gradient says why") {
  const Tensor a = Tensor::full({2}, 1);
  CHECK_ERROR(sum(a).backward(), Error, "no history");
  CHECK_ERROR(leaf().backward(), Error, "one-element");
  CHECK_ERROR(Tensor::full({2}, 1, DType::i32).with_grad(), Error, "i32");
  CHECK_ERROR(gradients(sum(leaf()), {a}), Error, "no history");
}

TEST_CASE("an operator inside a gradient rule is the user's line") {
  const Tensor x = Tensor::full({2, 3}, 1).with_grad();
  const std::string here = "tape.cpp:" + std::to_string(__LINE__ + 1);
  const Tensor loss = sum(square(x));
  Device::cpu().runtime().allocator().fail_allocation_after(1);
  CHECK_ERROR(loss.backward(), OutOfMemory, here);
}

TEST_CASE("a gradient with a history that outlives its leaf goes with its last handle") {
  const Bytes bytes;
  Tensor kept;
  {
    const Tensor w = leaf();
    const Tensor loss = sum(square(w) * w);
    loss.backward({.create_graph = true});
    kept = w.grad();
    sum(kept).backward({.retain_graph = true});  // 6 w added to 3 w^2
    CHECK(w.grad().item<float>({0}) == 3.75f);
  }
  CHECK(kept.item<float>({0}) == 0.75f);
  sum(kept).backward();  // nobody is left to read what arrives at the leaf
  kept = Tensor();
  CHECK(bytes.now() == 0);
}

TEST_CASE("gradients() gives each input a memory of its own") {
  const Tensor a = leaf(), b = leaf();
  const Tensors g = gradients(sum(a + b), {a, b});
  assign(g[0], 5);
  CHECK(g[1].item<float>({0}) == 1);
}

TEST_CASE("+= and its kin are refused where they would train nothing, and rebind elsewhere") {
  using Rebind = Tensor& (*)(Tensor&, const Operand&);
  const auto refused = [](Rebind rebind, const std::string& lines) {
    Tensor t = leaf();
    const Tensor other = t, constant = t.detach();
    {
      const NoGrad no_grad;
      CHECK_ERROR(rebind(t, 2), Error, lines + " makes another tensor");
      for (Tensor x : {constant, t * 1, Tensor::zeros({}), slice(t, 0, 1)})
        CHECK_NOTHROW(rebind(x, 2));
    }
    CHECK(t.item<float>({0}) == 0.5);
    // recompute's first run and gradient rules record nothing, but are not under NoGrad.
    const Tensor same = leaf();
    recompute([&](Tensor x) { return sum(square(rebind(x, 2))); }, same).backward();
    CHECK(same.grad().defined());
    CHECK(rebind(t, 2).item<float>({0}) != 0.5);
    CHECK(other.item<float>({0}) == 0.5);
  };
  refused(operator+=, "tensor:\nadd_assign(t, y) changes the parameter, t = t + y");
  refused(operator-=, "tensor:\nadd_assign(t, -y) changes the parameter, t = t - y");
  refused(operator*=, "tensor:\nassign(t, t * y) changes the parameter, t = t * y");
  refused(operator/=, "tensor:\nassign(t, t / y) changes the parameter, t = t / y");
}

TEST_CASE("views of a leaf are that leaf's memory, whenever it was updated") {
  const Tensor w = leaf();
  const Tensor head = slice(w, 0, 2);
  assign(w, 3);
  sum(square(head)).backward();
  CHECK(w.grad().item<float>({1}) == 6);
  CHECK(w.grad().item<float>({2}) == 0);
}
