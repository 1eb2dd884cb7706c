// Which of cuDNN's algorithms computes an LSTM, and in how many calls.
#include "ebb/core/ops/lstm.h"
#include "ebb/core/base/index_set.h"
#include "ebb/core/device/lent_stream.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/kernels/recurrent.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

// How one layer is computed, of 100 steps and a batch of 32.
std::string way_of(DType dtype, std::int64_t in, std::int32_t hidden, bool training) {
  const Device device = own_cuda();
  const LentStream stream(device.runtime());
  const Spec inputs[] = {{dtype, {32, 100, in}},
                         {dtype, {in, 4 * hidden}},
                         {dtype, {hidden, 4 * hidden}},
                         {dtype, {4 * hidden}}};
  const Attributes attributes(RecurrentAttributes{.layers = 1, .hidden = hidden});
  const IndexSet unwanted = training ? IndexSet{} : IndexSet{3};  // the reserve
  return lstm_op.cuda
      .prepare({.inputs = inputs,
                .outputs = {},
                .attributes = &attributes,
                .unwanted = &unwanted,
                .profile = &device.runtime().profile(),
                .stream = stream.get()})
      ->way();
}

}  // namespace

TEST_CASE("an LSTM of few hidden units is persistent where cuDNN needs no more memory for it") {
  const Machine machine;
  const std::string standard = "by cuDNN", persistent = "by cuDNN, persistent";
  for (const int version : {91900, 92600}) {  // the older takes more
    machine->set_cudnn(version);
    CAPTURE(version);
    const std::string& either = version == 91900 ? standard : persistent;
    for (const DType dtype : {DType::f32, DType::f16}) {
      CHECK(way_of(dtype, 64, 128, true) == either);
      CHECK(way_of(dtype, 64, 129, true) == standard);
      CHECK(way_of(dtype, 64, 192, false) == either);
      CHECK(way_of(dtype, 64, 193, false) == standard);
    }
    CHECK(way_of(DType::f64, 64, 128, true) == standard);
    CHECK(way_of(DType::f32, 300, 16, true) == either);  // its gradient of the input is most
  }
}

TEST_CASE("layers of an LSTM are one call of cuDNN, unless ebb's dropout lies between them") {
  const Machine machine;
  const Device device = own_cuda();
  for (const auto& [dropout, calls] : {std::pair(0.0, 3), {0.5, 9}}) {
    std::vector<LstmWeights> layers;
    for (const std::int64_t in : {8, 16, 16})
      layers.push_back({.input = Tensor::full({in, 64}, 0.1, DType::f32, device).with_grad(),
                        .recurrent = Tensor::full({16, 64}, 0.1, DType::f32, device).with_grad(),
                        .bias = Tensor::full({64}, 0.1, DType::f32, device).with_grad()});
    const Tensor x = Tensor::full({4, 5, 8}, 1, DType::f32, device);
    CHECK(machine.count(&emulated::Statistics::library_calls, [&, dropout = dropout] {
      sum(lstm(x, layers, {.dropout = dropout, .phase = Phase::training}).sequence).backward();
    }) == static_cast<std::size_t>(calls));
  }
}
