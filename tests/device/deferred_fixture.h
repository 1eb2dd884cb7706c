// A deferred device with an allocator, and kernels for it.
#pragma once
#include <memory>
#include <vector>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/tests/device/deferred_backend.h"
#include "ebb/tests/dies.h"

namespace ebb::tests {

inline constexpr std::size_t kTestCapacity = std::size_t{1} << 30;

struct DeferredDevice {
  explicit DeferredDevice(std::uint64_t seed = deferred_seed()) : backend(memory, seed) {}

  // A segment of its own, freed with the device.
  float* floats(std::size_t count) {
    const std::size_t page = source.page_bytes();
    segments.push_back(source.map((count * sizeof(float) + page - 1) / page * page));
    return static_cast<float*>(segments.back());
  }
  Status set(Stream* stream, float* to, const std::vector<float>& values) {
    return backend.copy_in(stream, to, values.data(), values.size() * sizeof(float));
  }
  Status set(Stream* stream, float* to, float value) {
    return set(stream, to, std::vector<float>{value});
  }
  // Fails the test where the device answers with a failure.
  std::vector<float> values(Stream* stream, const float* from, std::size_t count) {
    std::vector<float> values(count);
    const Status status = backend.copy_out(stream, values.data(), from, count * sizeof(float));
    if (!status.ok()) throw Error(status.problem);
    return values;
  }
  float value(Stream* stream, const float* from) { return values(stream, from, 1)[0]; }

  const std::shared_ptr<DeferredMemory> memory = std::make_shared<DeferredMemory>(kTestCapacity);
  DeferredSource source{memory};
  std::vector<void*> segments;
  DeferredBackend backend;
};

// y = scale * x + shift.
struct Affine {
  float scale = 1, shift = 0;
};

inline Status affine(const KernelContext& context) {
  const auto& [scale, shift] = context.attribute<Affine>();
  const Buffer& x = context.inputs[0];
  for (std::int64_t i = 0; i < x.elements(); ++i)
    context.outputs[0].as<float>()[i] = scale * x.as<float>()[i] + shift;
  return {};
}
inline Status refuses(const KernelContext&) { return Status::refuse("no such algorithm", 7); }

// Asks for y = scale * x + shift and forgets all it said.
inline Launched launch_affine(DeferredDevice& device, Stream* stream, float* y, float* x,
                              Affine affine_of, std::size_t count = 1, Kernel kernel = affine,
                              const char* name = "affine", const Prepared* prepared = nullptr) {
  const Spec spec{DType::f32, {static_cast<std::int64_t>(count)}};
  const std::vector<Buffer> inputs = {{x, spec}}, outputs = {{y, spec}};
  const Attributes attributes(affine_of);
  Launch launch;
  launch.run = kernel;
  launch.name = name;
  launch.context.inputs = inputs;
  launch.context.outputs = outputs;
  launch.context.attributes = &attributes;
  launch.context.prepared = prepared;
  return device.backend.run(stream, {&launch, 1});
}

}  // namespace ebb::tests
