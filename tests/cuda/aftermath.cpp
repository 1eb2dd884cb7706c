// After CUDA refused something or a device was lost, nothing is left behind that surprises later.
#include <thread>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/graph/session.h"
#include "ebb/models/lstm.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"

using namespace ebb;
using namespace ebb::tests;
using emulated::Fault;

TEST_CASE("a device that is lost stays lost to those who had it, though the driver serves again") {
  const Machine machine;
  // The failure shows when the work is put into the stream, when the host reads, or when it waits.
  for (const char* shows : {"asked", "read", "waited"}) {
    INFO(shows);
    const Device device = own_cuda();
    const Tensor x = Tensor::full({4}, 2, DType::f32, device);
    x.to_vector<float>();
    machine->set_at_once(shows == std::string("asked"));
    machine->inject(Fault::execute, 0, 700);  // cudaErrorIllegalAddress
    const auto fail = [&] {
      const Tensor y = x * 3;
      if (shows == std::string("waited")) device.runtime().synchronise(device.runtime().stream());
      y.to_vector<float>();
    };
    CHECK_THROWS_WITH(fail(), Catch::Contains("cudaErrorIllegalAddress") &&
                                  Catch::Contains("lost to this process"));
    machine->lose_device(0);
    CHECK_THROWS_WITH(x + 1, Catch::Contains("cudaErrorIllegalAddress"));
    CHECK_THROWS_WITH(x.to_vector<float>(), Catch::Contains("cudaErrorIllegalAddress"));
    CHECK((Tensor::full({1}, 1) + 1).item<float>() == 2);  // the CPU serves on
    machine->set_at_once(false);
  }
}

TEST_CASE("with EBB_CUDA_CHECK an operator whose work fails is named, and nothing is captured") {
  const Machine machine;
  const Variable variable("EBB_CUDA_CHECK", "1");
  {
    const Device device = own_cuda();
    device.runtime().set_poisons(false);
    Graph graph;
    const Tensor x = graph.placeholder("x", DType::f32, {2});
    const Tensor doubled = x * 2;
    Session session(graph, {.device = device});
    const std::uint64_t graphs = machine.statistics().graph_launches;
    for (int i = 0; i < 4; ++i)
      CHECK(session.run(doubled, {{x, Tensor::full({2}, i)}}).item<float>({1}) ==
            static_cast<float>(2 * i));
    CHECK(machine.statistics().graph_launches == graphs);
    const Tensor y = Tensor::full({4}, 2, DType::f32, device);
    y.to_vector<float>();
    machine->inject(Fault::execute, 0, 700);
    CHECK_THROWS_WITH(y * 3, Catch::Contains("[multiply] cudaErrorIllegalAddress"));
  }
  machine->lose_device(0);
}

TEST_CASE(
    "a program that cannot be instantiated runs by launches; one that cannot be launched fails") {
  const Machine machine;
  const Device device = own_cuda();
  device.runtime().set_poisons(false);
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {8, 8});
  const Tensor y = matmul(x, x) + 1;
  Session whole(graph, {.device = device}), session(graph, {.device = device});
  const auto run = [&](Session& by, int i) {
    return by.run(y, {{x, Tensor::full({8, 8}, i)}}).item<float>({1, 1});
  };
  const std::uint64_t graphs = machine.statistics().graph_launches;
  machine->inject(Fault::instantiate_graph, 0, 2);
  for (int i = 0; i < 2; ++i) CHECK(run(whole, i) == static_cast<float>(8 * i * i + 1));
  CHECK(machine.statistics().graph_launches == graphs);
  CHECK(run(whole, 2) == 33);  // is captured now
  CHECK(machine.statistics().graph_launches == graphs + 1);

  machine->inject(Fault::cublaslt, 0, 13);  // CUBLAS_STATUS_EXECUTION_FAILED
  CHECK_THROWS_WITH(run(session, 1), Catch::Contains("[matmul]"));
  for (int i = 0; i < 3; ++i) CHECK(run(session, i) == static_cast<float>(8 * i * i + 1));
  CHECK(machine.statistics().graph_launches > graphs);
  machine->inject(Fault::launch_graph, 0, 2);
  CHECK_THROWS_WITH(run(session, 5), Catch::Contains("cudaErrorMemoryAllocation"));
  CHECK(run(session, 6) == 289);
}

TEST_CASE(
    "captures for which the device has no room are tried ever more rarely, and made with room") {
  const Machine machine;
  const Device device = own_cuda();
  device.runtime().set_poisons(false);
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {8}), y = x * 2;
  Session session(graph, {.device = device});
  const Feeds fed = {{x, Tensor::full({8}, 3, DType::f32, device)}};
  const auto launches = [&] {
    return machine.count(&emulated::Statistics::launches,
                         [&] { CHECK(session.run(y, fed).item<float>({5}) == 6); });
  };
  const std::size_t once = launches();
  machine->set_capacity(machine.statistics().bytes);
  for (const std::size_t tries : {1u, 1u, 0u, 1u, 0u, 0u, 0u, 1u, 0u})
    CHECK(launches() == once + tries * once);
  machine->set_capacity(std::size_t{4} << 30);
  for (int run = 10; run < 16; ++run) CHECK(launches() == once);
  CHECK(launches() == once);  // is captured
  CHECK(launches() == 0);
}

TEST_CASE("what CUDA refuses leaves no error behind for the next who asks") {
  const Machine machine;
  const Device device = own_cuda();
  const Tensor x = Tensor::full({4}, 2, DType::f32, device);
  const std::vector<float> many(1 << 16, 1);
  const std::size_t before = memory::stats(device).allocated.current;
  machine->inject(Fault::launch, 0, 701);  // cudaErrorLaunchOutOfResources
  CHECK_THROWS_WITH(x * 3, Catch::Contains("[multiply]") && Catch::Contains("aftermath.cpp"));
  CHECK(machine->last_error() == 0);
  CHECK(memory::stats(device).allocated.current == before);
  CHECK((x * 3).item<float>({3}) == 6);
  machine->inject(Fault::copy, 0, 2);
  CHECK_THROWS_WITH(x.to_vector<float>(), Catch::Contains("cudaErrorMemoryAllocation"));
  CHECK(machine->last_error() == 0);
  machine->inject(Fault::allocate_host, 0, 2);  // the bounce buffer of a new stream
  std::thread([&] {
    CHECK((Tensor::from(many, {1 << 16}).to(device) * 1).item<float>({77}) == 1);
    CHECK((Tensor::from(std::vector<float>{5}, {1}).to(device) * 1).item<float>() == 5);
    CHECK(machine->last_error() == 0);
  }).join();
  const Device other = own_cuda();  // on which no thread has had a second stream yet
  const Tensor there = Tensor::full({4}, 2, DType::f32, other);
  for (const Fault fault : {Fault::create_stream, Fault::create_event}) {
    const std::uint64_t streams = machine.statistics().streams;
    std::thread([&] {
      machine->inject(fault, 0, 2);
      CHECK_THROWS_WITH(there.item<float>({0}), Catch::Contains("no stream could be made"));
      CHECK(machine->last_error() == 0);
      CHECK(machine.statistics().streams == streams);
    }).join();
  }
}

TEST_CASE("a step that an LSTM fails in says which, and the next is made") {
  const Machine machine;
  const Device device = own_cuda();
  Parameters parameters(device, Seed{1});
  const models::Lstm lstm(parameters, 8, {.hidden = 8});
  const Tensor x = Tensor::full({2, 3, 8}, 1, DType::f32, device);
  const auto last = [&] { return lstm(x, Phase::inference).sequence.item<float>({1, 2, 3}); };
  const float right = last();
  machine->inject(Fault::cudnn, 0, 3000);
  CHECK_THROWS_WITH(last(), Catch::Contains("[lstm]"));
  CHECK(last() == right);
}

TEST_CASE("an LSTM whose form cannot be had on a second stream is an error, and no other form") {
  const Machine machine;
  const Device device = own_cuda();
  Parameters parameters(device, Seed{1});
  const models::Lstm lstm(parameters, 8, {.hidden = 8});
  const Tensor x = Tensor::full({2, 3, 8}, 1, DType::f32, device);
  const float first = lstm(x, Phase::inference).sequence.item<float>({1, 2, 3});
  std::thread([&] {
    machine->inject(Fault::create_cudnn, 0, 2);
    CHECK_THROWS_WITH(lstm(x, Phase::inference), Catch::Contains("[lstm]"));
    CHECK(lstm(x, Phase::inference).sequence.item<float>({1, 2, 3}) == first);
  }).join();
  // An LSTM that starts without cuDNN stays without it.
  const Device other = own_cuda();
  Parameters own(other, Seed{1});
  const models::Lstm composed(own, 8, {.hidden = 8});
  const Tensor there = Tensor::full({2, 3, 8}, 1, DType::f32, other);
  machine->inject(Fault::create_cudnn, 0, 2);
  CHECK(composed(there, Phase::inference).sequence.item<float>({1, 2, 3}) == Approx(first));
  const auto launches_of = [&] {
    return machine.count(&emulated::Statistics::launches,
                         [&] { composed(there, Phase::inference); });
  };
  const std::size_t here = launches_of();
  std::size_t elsewhere = 0;
  std::thread([&] { elsewhere = launches_of(); }).join();
  CHECK(elsewhere == here);
}
