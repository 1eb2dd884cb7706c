// A tape holds only the bytes that the live handles explain: MEMORY.md, rows 6 and 7.
#include <stdexcept>

#include "ebb/core/device/runtime.h"
#include "ebb/core/ops/shape_rules.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/host_kernel.h"
#include "ebb/tests/eager/bytes.h"

using namespace ebb;
using ebb::tests::Bytes;

namespace {

// No whole number of blocks.
constexpr std::int64_t kSize = 17;
constexpr std::size_t kMatrix = 1536;  // kSize * kSize floats
constexpr std::size_t kNumber = 512;

struct Halted : std::runtime_error {
  Halted() : std::runtime_error("half-way") {}
};

// A model of two matrices with a constant input.
struct Program {
  explicit Program(Device where) : device(std::move(where)) {}
  Tensor matrix(double value) const {
    return Tensor::full({kSize, kSize}, value, DType::f32, device);
  }
  Tensor hidden() const { return tanh(matmul(x, first)); }

  const Device device;
  const Tensor x = matrix(0.5);
  const Tensor first = matrix(0.1).with_grad(), second = matrix(0.2).with_grad();
};

// Runs the test on the device and on its twin; no bytes may be left.
template <class Test>
void on_both(const Test& test) {
  for (const Device& device : {Device::cpu(), Device::cpu().twin()}) {
    CAPTURE(device.name());
    const Bytes all(device);
    test(device);
    CHECK(all.now() == 0);
  }
}

// A user's operators: one keeps its input, the other's gradient rule throws.
const OpDef keeping{
    .name = "keeping",
    .infer = detail::same_shape,
    .gradient = [](const GradientContext& g) -> Tensors { return {g.dy() * g.x(0)}; },
    .keeps = input(0),
    .cpu = {tests::copy_first},
    .cuda = tests::copied<tests::copy_first>};
const OpDef failing{.name = "failing",
                    .infer = detail::same_shape,
                    .gradient = [](const GradientContext&) -> Tensors { throw Halted(); },
                    .cpu = {tests::copy_first},
                    .cuda = tests::copied<tests::copy_first>};

Tensor apply_own(const OpDef& op, const Tensor& x) {
  return apply_one(op, {x}, {}, CallSite::here());
}

}  // namespace

TEST_CASE("an output that is kept past the backward pass holds itself alone", "[row7]") {
  on_both([](const Device& device) {
    const Program program(device);
    const Bytes bytes(device);
    const Tensor hidden = program.hidden();
    const Tensor scores = matmul(hidden, program.second);
    Tensor loss = mean(square(scores));
    CHECK(bytes.now() == 2 * kMatrix + kNumber);  // squares keep their input, products theirs
    loss.backward();
    CHECK(bytes.now() == 2 * kMatrix + kNumber + 2 * kMatrix);  // and two gradients
    program.first.zero_grad();
    program.second.zero_grad();
    CHECK(bytes.now() == 2 * kMatrix + kNumber);
    loss = Tensor();
    CHECK(bytes.now() == 2 * kMatrix);
  });
}

TEST_CASE("a loss that is dropped without a backward pass takes its tape along", "[row7]") {
  on_both([](const Device& device) {
    const Program program(device);
    const Bytes bytes(device);
    {
      const Tensor loss = mean(square(matmul(program.hidden(), program.second)));
      CHECK(bytes.now() == 2 * kMatrix + kNumber);
    }
    CHECK(bytes.now() == 0);
  });
}

TEST_CASE("a detached output holds itself and no tape", "[row7]") {
  on_both([](const Device& device) {
    const Program program(device);
    const Bytes bytes(device);
    std::vector<Tensor> outputs;
    for (std::size_t i = 1; i <= 3; ++i) {
      outputs.push_back(matmul(program.hidden(), program.second).detach());
      CHECK(bytes.now() == i * kMatrix);
    }
  });
}

TEST_CASE("under NoGrad a chain holds two links at a time, and its end one", "[row7]") {
  on_both([](const Device& device) {
    const Program program(device);
    const NoGrad no_grad;
    const Bytes bytes(device);
    Tensor y = program.hidden();
    for (int i = 0; i < 5; ++i) y = matmul(y, program.second);
    CHECK(bytes.peak() == 2 * kMatrix);
    CHECK(bytes.now() == kMatrix);
  });
}

TEST_CASE("retain_graph keeps the tape as it was, and the next backward pass frees it", "[row7]") {
  on_both([](const Device& device) {
    const Program program(device);
    const Bytes bytes(device);
    const Tensor loss = mean(square(matmul(program.hidden(), program.second)));
    const std::size_t tape = bytes.now();
    for (int i = 0; i < 3; ++i) {
      loss.backward({.retain_graph = true});
      CHECK(bytes.now() == tape + 2 * kMatrix);
    }
    loss.backward();
    CHECK(bytes.now() == kNumber + 2 * kMatrix);
  });
}

TEST_CASE("a gradient of a gradient leaves the two gradients and nothing in between", "[row7]") {
  on_both([](const Device& device) {
    const Program program(device);
    const Bytes bytes(device);
    {
      Tensor loss = mean(square(matmul(program.hidden(), program.second)));
      const Tensors g = gradients(loss, {program.first, program.second}, {.create_graph = true});
      sum(square(g[0]) + square(g[1])).backward();
      // Two matrices in g, two in .grad(), the loss, and the input that its square() keeps. The
      // first pass, with create_graph, frees no record, and the second does not come by that one.
      CHECK(bytes.now() == 4 * kMatrix + kNumber + kMatrix);
      loss = Tensor();
      CHECK(bytes.now() == 4 * kMatrix);
    }
    CHECK(bytes.now() == 2 * kMatrix);
    program.first.zero_grad();
    program.second.zero_grad();
    CHECK(bytes.now() == 0);
  });
}

TEST_CASE("gradients with a history, never cleared, go with zero_grad or with their leaves",
          "[row7]") {
  on_both([](const Device& device) {
    const auto steps = [](const Program& program) {
      for (int i = 0; i < 3; ++i)
        mean(square(matmul(program.hidden(), program.second))).backward({.create_graph = true});
      CHECK(program.first.grad().requires_grad());
    };
    const Program program(device);
    const Bytes bytes(device);
    steps(program);
    CHECK(bytes.now() > 2 * kMatrix);
    program.first.zero_grad();
    program.second.zero_grad();
    CHECK(bytes.now() == 0);
    {
      const Program other(device);
      steps(other);
    }
    CHECK(bytes.now() == 0);
  });
}

TEST_CASE("an exception in the middle of a backward pass leaves no more than the loss", "[row7]") {
  on_both([](const Device& device) {
    const Program program(device);
    const Bytes bytes(device);
    // The pass computes the second matrix's gradient, then fails before it comes to the first.
    const auto loss_of = [&] {
      return mean(square(matmul(apply_own(failing, program.hidden()), program.second)));
    };
    {
      const Tensor loss = loss_of();
      CHECK_THROWS_AS(loss.backward(), Halted);
      CHECK(bytes.now() == kNumber);
      CHECK_FALSE(program.second.grad().defined());
      CHECK_ERROR(loss.backward(), Error, "retain_graph");
    }
    CHECK(bytes.now() == 0);
    mean(square(program.second)).backward();
    {
      const Tensor loss = loss_of();
      CHECK_THROWS_AS(loss.backward(), Halted);
      CHECK(bytes.now() == kNumber + kMatrix);  // the earlier gradient stays, marked incomplete
    }
    {
      const Tensor loss = loss_of();
      const std::size_t tape = bytes.now() - kMatrix;
      CHECK_THROWS_AS(loss.backward({.retain_graph = true}), Halted);
      CHECK(bytes.now() == kMatrix + tape);
    }
    program.second.zero_grad();
    CHECK(bytes.now() == 0);
  });
}

TEST_CASE("an operator of the user's keeps what its definition says, while it is needed",
          "[row7]") {
  on_both([](const Device& device) {
    const Program program(device);
    const Bytes bytes(device);
    {
      const Tensor y = apply_own(keeping, program.first * 2);
      CHECK(bytes.now() == 2 * kMatrix);  // the product, and y
      sum(y).backward();
      CHECK(bytes.now() == 2 * kMatrix);  // y, and the gradient
    }
    program.first.zero_grad();
    {
      const NoGrad no_grad;
      const Tensor y = apply_own(keeping, program.first * 2);
      CHECK(bytes.now() == kMatrix);
    }
    CHECK(bytes.now() == 0);
  });
}

TEST_CASE("a recomputed region holds its result, and nothing where computing it again fails",
          "[row7]") {
  on_both([](const Device& device) {
    const Program program(device);
    const Bytes bytes(device);
    bool fails = false;
    const auto region = [&](const Tensor& in) {
      const Tensor y = tanh(matmul(tanh(in), program.second));
      if (fails) throw Halted();
      return y;
    };
    std::vector<Tensor> losses;
    for (std::size_t i = 1; i <= 3; ++i) {
      losses.push_back(sum(recompute(region, matmul(program.x, program.first))));
      CHECK(bytes.now() == i * kNumber + kMatrix);  // the region's input
      losses.back().backward();
      program.first.zero_grad();
      program.second.zero_grad();
      CHECK(bytes.now() == i * kNumber);
    }
    losses.clear();
    const Tensor loss = sum(recompute(region, matmul(program.x, program.first)));
    fails = true;
    CHECK_THROWS_AS(loss.backward(), Halted);
    CHECK_FALSE(program.second.grad().defined());
    CHECK(bytes.now() == kNumber);
  });
}
