// Threads that share memory, each with a stream of its own.
#include <atomic>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/core/tensor/tensor.h"
#include "ebb/eager/no_grad.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

constexpr int kThreads = 3;

// Each thread has its own handles of shared tensors; the i-th tensor is full of i. reads(thread, x)
// returns a tensor x + 1 and lets go of x. The last thread to do so frees it.
template <class Reads>
void share(int rounds, const Reads& reads) {
  std::vector<Tensor> shared;
  for (int i = 0; i < rounds; ++i) shared.push_back(Tensor::full({16}, i));
  std::vector<std::vector<Tensor>> own(kThreads, shared);
  shared.clear();
  std::atomic<int> wrong{0}, ready{0};
  std::mutex mutex;
  std::string problem;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const NoGrad no_grad;
      ready.fetch_add(1);
      while (ready.load() < kThreads) std::this_thread::yield();
      try {
        for (std::size_t i = 0; i < own[t].size(); ++i) {
          const Tensor y = reads(t, std::exchange(own[t][i], Tensor()));
          const Tensor over = Tensor::full({16}, -1e6);  // may get the memory
          if (i % 7 == 0 && y.item<float>({3}) != static_cast<float>(i + 1)) ++wrong;
        }
      } catch (const std::exception& error) {
        const std::lock_guard lock(mutex);
        ++wrong;
        problem = error.what();
      }
    });
  for (std::thread& thread : threads) thread.join();
  INFO(problem);
  CHECK(wrong == 0);
}

TEST_CASE("what several threads read is not written to again before all of them have read it",
          "[concurrent]") {
  share(3000, [](std::size_t, const Tensor& x) { return x + 1; });
}

TEST_CASE("what several sessions are fed is not written to again before all of them have read it",
          "[concurrent]") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {16});
  const Tensor y = x + 1;
  std::vector<Session> sessions;
  for (int i = 0; i < kThreads; ++i) sessions.emplace_back(graph);
  share(1000, [&](std::size_t thread, const Tensor& fed) {
    return sessions[thread].run(y, {{x, fed}});
  });
}

// A tensor in memory without a previous user. Waiting for a previous user would hide that another
// wait is missing.
Tensor fresh(float value) {
  memory::release_cached(Device::cpu());
  return Tensor::full({1 << 20}, value);
}

TEST_CASE("a session reads what it is fed once it is there") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {1 << 20});
  const Tensor y = x + 1;
  Session session(graph);
  const Tensor fed = fresh(5);
  CHECK(session.run(y, {{x, fed}}).item<float>({1 << 19}) == 6);
}

TEST_CASE("a session reads what its graph captured once it is there") {
  Graph graph;
  const Parameters parameters(graph);
  const Tensor one = parameters.declare("one", {}, initializers::constant(1));
  Session session(graph);
  session.initialize(parameters);
  const Tensor captured = fresh(5);
  CHECK(session.run(one + captured).item<float>({1 << 19}) == 6);
}

TEST_CASE("what a session fetched is read once it is there") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {1 << 20});
  Session session(graph);
  const Tensor fed = fresh(5);
  const Tensor fetched = session.run(x + 1, {{x, fed}});
  CHECK((fetched + 1).item<float>({1 << 19}) == 7);
}

TEST_CASE("a session whose values another has read may change them") {
  Graph graph;
  const Parameters parameters(graph, Seed{1});
  const Tensor w = parameters.declare("w", {3}, initializers::constant(1));
  const Tensor next = add_assign(w, 5);
  Session one(graph), other(graph);
  one.initialize(parameters);
  other.copy_from(one);
  one.run(next);
  CHECK(other.value(w).item<float>({1}) == 1);
  CHECK(one.value(w).item<float>({1}) == 6);
}

}  // namespace
}  // namespace ebb::tests
