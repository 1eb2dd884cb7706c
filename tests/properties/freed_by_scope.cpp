// Training leaves only the bytes of its live handles: MEMORY.md, rows 6 and 7.
#include "ebb/core/device/runtime.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/eager/bytes.h"
#include "ebb/tests/properties/bundled_models.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

constexpr int kScopes = 4;

std::vector<Device> devices() { return {Device::cpu(), Device::cpu().twin()}; }

// Bytes of the block of a tensor that shares it with no other.
std::size_t block_bytes(const Tensor& tensor) {
  return tensor.device().runtime().profile().rounded(tensor.bytes());
}

std::size_t block_bytes(const std::vector<Parameters::Entry>& entries) {
  std::size_t bytes = 0;
  for (const Parameters::Entry& entry : entries) bytes += block_bytes(entry.tensor);
  return bytes;
}

template <class Check>
void for_all(const Check& check) {
  for (const BundledModel& model : bundled_models())
    for (const Method method : kMethods)
      for (const Device& device : devices()) {
        CAPTURE(model.name, name(method), device.name());
        check(model, method, device);
      }
}

}  // namespace

TEST_CASE("a trained model holds its parameters and slots, and nothing when it is dropped",
          "[row6]") {
  for_all([](const BundledModel& model, Method method, const Device& device) {
    const Bytes bytes(device);
    {
      const Parameters parameters(device, Seed{7});
      const Loss loss_of = model.make(parameters);
      const std::size_t held = block_bytes(parameters.entries()) + block_bytes(parameters.states());
      CHECK(bytes.now() == held);
      for (int i = 0; i < kScopes; ++i) {
        {
          const Tensor x = batch_of(model.input, kBatchRows, device),
                       y = batch_of(model.target, kBatchRows, device);
          const Tensor loss = train(method, loss_of(x, y), x, parameters);
          CHECK(bytes.now() == held + block_bytes(parameters.slots()) + block_bytes(x) +
                                   block_bytes(y) + block_bytes(loss));
        }
        CHECK(bytes.now() == held + block_bytes(parameters.slots()));
      }
    }
    CHECK(bytes.now() == 0);
  });
}

TEST_CASE("gradients hold as much as their parameters, until zero_grad or the model's end",
          "[row6]") {
  for (const BundledModel& model : bundled_models())
    for (const Device& device : devices()) {
      CAPTURE(model.name, device.name());
      const Bytes bytes(device);
      {
        const Parameters parameters(device, Seed{7});
        const Loss loss_of = model.make(parameters);
        const auto backward = [&] {
          const Tensor x = batch_of(model.input, kBatchRows, device),
                       y = batch_of(model.target, kBatchRows, device);
          loss_of(x, y).backward();
        };
        const std::size_t held = bytes.now();
        for (int i = 0; i < kScopes; ++i) {
          backward();
          CHECK(bytes.now() == held + block_bytes(parameters.entries()));
        }
        parameters.zero_grad();
        CHECK(bytes.now() == held);
        backward();
      }
      CHECK(bytes.now() == 0);
    }
}

TEST_CASE("losses that are kept hold one number each", "[row7]") {
  for_all([](const BundledModel& model, Method method, const Device& device) {
    const Parameters parameters(device, Seed{7});
    const Loss loss_of = model.make(parameters);
    const Tensor x = batch_of(model.input, kBatchRows, device),
                 y = batch_of(model.target, kBatchRows, device);
    train(method, loss_of(x, y), x, parameters);  // makes the slots
    const Bytes bytes(device);
    Tensors losses;
    for (std::size_t i = 1; i <= kScopes; ++i) {
      losses.push_back(train(method, loss_of(x, y), x, parameters));
      CHECK(bytes.now() == i * 512);
    }
    losses.clear();
    CHECK(bytes.now() == 0);
  });
}
