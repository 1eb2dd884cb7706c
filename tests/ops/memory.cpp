// Eager operators take from the allocator what their definitions declare.
#include <array>

#include "ebb/core/device/runtime.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/eager/no_grad.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/ops/harness.h"
#include "ebb/tests/ops/requested.h"

namespace ebb::tests {
namespace {

std::size_t requested_peak() { return allocator().stats().requested.peak; }

// One application of a sample's operator, with inputs of its own.
struct Applied {
  Applied(const Sample& sample, std::int64_t batch, DType dtype = DType::f32) {
    const RecordedSample recorded(sample, dtype, false, batch);
    const Node& node = recorded.node();
    op = node.op;
    attributes = node.attributes;
    values = recorded.node_values(make_inputs(sample, dtype, batch));
  }
  // Hands over the inputs of `expiring` as temporaries; nobody reads the outputs of `unwanted`.
  Tensors run(const IndexSet& expiring = {}, const IndexSet& unwanted = {}) const {
    InlineVector<Input, 16> inputs(values.begin(), values.end());
    for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i].expiring = expiring.has(i);
    return apply(*op, {inputs.data(), inputs.size()}, attributes, {}, unwanted);
  }

  const OpDef* op;
  Attributes attributes;
  Tensors values;
};

// Bytes of the tensors i for which which(i) is true.
template <class Which>
std::size_t bytes_of_all(const Tensors& tensors, const Which& which) {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].defined() && which(i)) bytes += tensors[i].bytes();
  return bytes;
}

}  // namespace

TEST_CASE("An eager operator takes its outputs and its declared workspace, and keeps the outputs") {
  for (const DType dtype : {DType::f32, DType::f16})
    for (const Sample& sample : all_samples(dtype)) {
      if (sample.op->view || sample.inputs.empty()) continue;
      for (const std::int64_t batch : batches(dtype, {0, 3, 40})) {
        INFO(sample.name << ", " << name(dtype) << ", batch of " << batch);
        const KernelCase declared(sample, dtype, batch);
        const Applied application(sample, batch, dtype);
        std::size_t outputs = 0;
        for (std::size_t i = 0; i < declared.outputs.size(); ++i)
          if (!(i == 0 && !sample.op->updates.empty()) && !sample.op->gradient_outputs.has(i))
            outputs += declared.outputs[i].bytes();
        const NoGrad no_grad;
        const std::size_t before = requested();
        allocator().reset_peaks();
        const Tensors results = application.run();
        const MemoryNeeds needs =
            declared.needs({}, named(sample.op->gradient_outputs, declared.outputs.size()));
        CHECK(requested_peak() - before == outputs + needs.workspace_bytes);
        CHECK(requested() - before == outputs);
      }
    }
}

TEST_CASE("An eager operator destroys what expires, takes no workspace for it, and then frees it") {
  int destroying = 0;
  for (const Sample& sample : all_samples(DType::f32)) {
    if (sample.op->destroys.empty()) continue;
    for (const std::int64_t batch : {0, 3, 40}) {
      INFO(sample.name << ", batch of " << batch);
      ++destroying;
      const KernelCase declared(sample, DType::f32, batch);
      const Applied application(sample, batch);
      const IndexSet destroys = named(sample.op->destroys, application.values.size());
      const std::size_t expired =
          bytes_of_all(application.values, [&](std::size_t i) { return destroys.has(i); });
      const NoGrad no_grad;
      const Tensors copied = application.run();
      const std::size_t outputs = bytes_of_all(copied, [](std::size_t) { return true; });
      {
        const Tensors held = application.values;  // another handle still needs them
        const std::size_t before = requested();
        allocator().reset_peaks();
        const Tensors results = application.run(destroys);
        CHECK(requested_peak() - before == outputs + declared.needs().workspace_bytes);
        for (std::size_t i = 0; i < held.size(); ++i)
          if (!sample.op->shape_only.has(i)) CHECK((bytes_of(held[i]) == declared.input_values[i]));
      }
      const std::size_t before = requested();
      allocator().reset_peaks();
      const Tensors results = application.run(destroys);
      CHECK(requested_peak() - before == outputs + declared.needs(destroys).workspace_bytes);
      CHECK(requested() + expired - before == outputs);
      for (std::size_t i = 0; i < results.size(); ++i)
        CHECK((bytes_of(results[i]) == bytes_of(copied[i])));
    }
  }
  CHECK(destroying > 0);
}

TEST_CASE("An eager operator makes no output that it may leave out and nobody reads") {
  int left_out = 0;
  for (const Sample& sample : all_samples(DType::f32)) {
    if (sample.op->optional_outputs.empty()) continue;
    INFO(sample.name);
    const Applied application(sample, kBatch);
    const NoGrad no_grad;
    const Tensors all = application.run();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!sample.op->optional_outputs.has(i)) continue;
      INFO("output " << i);
      ++left_out;
      const std::size_t before = requested();
      const Tensors others = application.run({}, {i});
      CHECK_FALSE(others[i].defined());
      CHECK(requested() - before == bytes_of_all(all, [&](std::size_t j) { return j != i; }));
    }
  }
  CHECK(left_out > 0);
}

TEST_CASE("The tape keeps what a definition says its gradient reads, and nothing else") {
  for (const Sample& sample : all_samples(DType::f32)) {
    if (sample.order == 0) continue;
    INFO(sample.name);
    const std::size_t before = requested();
    Applied application(sample, kBatch);
    const OpDef& op = *application.op;
    IndexSet wants;
    for (std::size_t i = 0; i < application.values.size(); ++i)
      if (is_floating(application.values[i].dtype()) && !op.shape_only.has(i)) {
        application.values[i] = application.values[i].with_grad();
        if (op.updates.has(i)) application.values[i] = application.values[i] * 1;  // no leaf
        wants.insert(i);
      }

    Tensors results = application.run();
    // Output 0 is held anyway, so memory that it shares counts once.
    std::size_t expected = op.view ? application.values[0].bytes() : results[0].bytes();
    expected += bytes_of_all(application.values, [&](std::size_t i) {
      return keeps_input(op, i, wants) && !(i == 0 && op.view);
    });
    expected +=
        bytes_of_all(results, [&](std::size_t i) { return i > 0 && keeps_output(op, i, wants); });
    application.values.clear();
    results.resize(1);
    CHECK(requested() - before == expected);
    results.clear();
    CHECK(requested() == before);
  }
}

TEST_CASE("On a simulated device every operator takes the bytes that it takes on the real one") {
  const Device twin = Device::simulated("cpu", std::size_t{1} << 30);
  for (const Sample& sample : all_samples(DType::f32)) {
    if (sample.inputs.empty()) continue;  // no input names a device: tests/core/devices.cpp
    INFO(sample.name);
    const auto figures_on = [&](const Device& device) {
      Tensors inputs;
      for (const Tensor& input : make_inputs(sample, DType::f32)) {
        inputs.push_back(input.to(device));
        if (is_floating(input.dtype())) inputs.back() = inputs.back().with_grad();
      }
      auto& allocator = device.runtime().allocator();
      allocator.reset_peaks();
      const memory::Stats before = allocator.stats();
      const Tensors results = run_eagerly(sample, inputs);
      const memory::Stats after = allocator.stats();
      return std::array{after.requested.current - before.requested.current,
                        after.requested.peak - before.requested.current,
                        after.allocated.current - before.allocated.current,
                        after.allocated.peak - before.allocated.current};
    };
    CHECK(figures_on(twin) == figures_on(Device::cpu()));
  }
}

TEST_CASE("A chain of temporaries is computed in the memory of the first") {
  const Tensor x = Tensor::full({1000}, 2);
  const std::size_t before = requested();
  allocator().reset_peaks();
  const Tensor y = exp(-(square(x) * 2 + 1)) * x;
  CHECK(requested_peak() - before == y.bytes());
}

TEST_CASE("Reshaped tensors and slices share their source's memory") {
  const Tensor x = Tensor::from({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}});
  const std::size_t before = requested();
  const Tensor flat = reshape(x, {-1});
  const Tensor middle = slice(x, 1, 2);
  CHECK(requested() == before);
  CHECK(middle.to_vector<float>() == std::vector<float>{3, 4});
  CHECK(slice(slice(x, 1), -1).to_vector<float>() == std::vector<float>{5, 6});
  CHECK(detail::data(flat) == detail::data(x));
}

}  // namespace ebb::tests
