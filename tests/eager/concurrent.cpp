#include <thread>
#include <vector>

#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/tensor/tape_record.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/eager/bytes.h"

using namespace ebb;
using ebb::tests::Bytes;

TEST_CASE("tapes of several threads that keep one input agree on its category", "[concurrent]") {
  const Tensor shared = Tensor::full({256}, 2);
  const auto category = [&] { return shared.impl()->storage->category(); };
  const Bytes bytes;
  const auto activations = bytes.of(memory::Category::activation);
  for (int round = 0; round < 40; ++round) {
    // Each thread keeps the storage, drops it, and keeps it again: the final count decides.
    std::vector<detail::Kept> held(4);
    std::vector<std::thread> threads;
    for (detail::Kept& mine : held)
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) {
          mine = detail::Kept(shared.impl()->storage, 0);
          mine.drop();
        }
        if (round % 2 == 0) mine = detail::Kept(shared.impl()->storage, 0);
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(category() ==
          (round % 2 == 0 ? memory::Category::activation : memory::Category::temporary));
    held.clear();
    CHECK(category() == memory::Category::temporary);
    CHECK(bytes.of(memory::Category::activation) == activations);
  }
}

TEST_CASE("threads may train on one input at a time", "[concurrent]") {
  const Tensor input = Tensor::full({256}, 2) * 1;
  const Bytes bytes;
  const auto activations = bytes.of(memory::Category::activation);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const Tensor w = Tensor::full({256}, 3).with_grad();
      for (int step = 0; step < 50; ++step) sum(w * input).backward();
      if (w.grad().to_vector<float>() != std::vector<float>(256, 100)) std::abort();
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(bytes.of(memory::Category::activation) == activations);
}
