#pragma once
#include <algorithm>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <new>
#include <random>
#include <vector>

#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/workers.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/kernels/threads.h"

// Kernels called as the executors call them: memory of exactly the declared size, poisoned before
// (every read of what was not written shows up as NaN) and guarded behind.
namespace ebb::tests {

// A tensor's memory, its spec beside it. `shift` moves it off its 64-byte alignment.
class Values {
 public:
  Values() = default;
  explicit Values(const Spec& spec, std::size_t shift = 0) : spec_(spec), bytes_(spec.bytes()) {
    memory_.resize(bytes_ + shift + 3 * kGuard);
    void* start = memory_.data();
    std::size_t room = memory_.size();
    std::align(kGuard, bytes_ + shift + kGuard, start, room);
    data_ = static_cast<std::byte*>(start) + shift;
    std::fill_n(data_, bytes_, std::byte{0xFF});
    std::fill_n(data_ + bytes_, kGuard, std::byte{0xA5});
  }
  Values(const Values& other) : Values(other.spec_) { copy(other); }
  Values(Values&&) = default;
  Values& operator=(Values&&) = default;
  Values& operator=(const Values& other) { return *this = Values(other); }

  const Spec& spec() const { return spec_; }
  Buffer buffer() { return {.data = data_, .spec = spec_}; }
  void* data() { return data_; }
  template <class T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  std::int64_t elements() const { return spec_.shape.elements(); }
  std::size_t bytes() const { return bytes_; }
  double at(std::int64_t i) const {
    switch (spec_.dtype) {
      case DType::f32:
        return static_cast<double>(reinterpret_cast<const float*>(data_)[i]);
      case DType::f64:
        return reinterpret_cast<const double*>(data_)[i];
      case DType::i32:
        return reinterpret_cast<const std::int32_t*>(data_)[i];
      case DType::i64:
        return static_cast<double>(reinterpret_cast<const std::int64_t*>(data_)[i]);
      default:
        return static_cast<double>(reinterpret_cast<const std::uint8_t*>(data_)[i]);
    }
  }
  void set(std::int64_t i, double value) {
    switch (spec_.dtype) {
      case DType::f32:
        as<float>()[i] = static_cast<float>(value);
        return;
      case DType::f64:
        as<double>()[i] = value;
        return;
      case DType::i32:
        as<std::int32_t>()[i] = static_cast<std::int32_t>(value);
        return;
      case DType::i64:
        as<std::int64_t>()[i] = static_cast<std::int64_t>(value);
        return;
      default:
        as<std::uint8_t>()[i] = static_cast<std::uint8_t>(value);
        return;
    }
  }
  std::vector<double> list() const {
    std::vector<double> values;
    for (std::int64_t i = 0; i < elements(); ++i) values.push_back(at(i));
    return values;
  }
  bool same_bits(const Values& other) const {
    return bytes_ == other.bytes_ && (bytes_ == 0 || std::memcmp(data_, other.data_, bytes_) == 0);
  }
  bool guard_intact() const {
    for (std::size_t i = 0; i < kGuard; ++i)
      if (data_[bytes_ + i] != std::byte{0xA5}) return false;
    return true;
  }

 private:
  static constexpr std::size_t kGuard = 64;
  void copy(const Values& other) {
    if (bytes_ > 0) std::memcpy(data_, other.data_, bytes_);
  }
  Spec spec_;
  std::size_t bytes_ = 0;
  std::vector<std::byte> memory_;
  std::byte* data_ = nullptr;
};

inline Values values(DType type, const Shape& shape,
                     const std::function<double(std::int64_t)>& of) {
  Values v({type, shape});
  for (std::int64_t i = 0; i < v.elements(); ++i) v.set(i, of(i));
  return v;
}
template <class T>
Values scalar(T value) {
  return values(dtype_of<T>, Shape(), [&](std::int64_t) { return static_cast<double>(value); });
}

// Seeded, so that a failure comes back.
struct Dice {
  std::mt19937 engine;
  explicit Dice(unsigned seed) : engine(seed) {}
  std::int64_t integer(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine);
  }
  double real(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine);
  }
  Values tensor(DType type, const Shape& shape, double low = -1, double high = 1) {
    return values(type, shape, [&](std::int64_t) { return real(low, high); });
  }
};

struct Call {
  Kernel kernel = nullptr;
  MemoryRule memory = nullptr;
  Attributes attributes = {};
  std::vector<Values> inputs = {};
  std::vector<Spec> outputs = {};
  std::uint64_t without_input = 0;  // bits: these inputs, and outputs, have no data
  std::uint64_t without_output = 0;
  IndexSet destroyed = {};          // inputs that the kernel may write over
  std::size_t workspace_bytes = 0;  // what the memory rule said at the last run

  // The outputs; inputs updated in place or destroyed are changed.
  std::vector<Values> run() {
    std::vector<Spec> specs;
    std::vector<Buffer> in, out;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      specs.push_back(inputs[i].spec());
      in.push_back(inputs[i].buffer());
      if ((without_input >> i & 1) != 0) in.back().data = nullptr;
    }
    IndexSet unwanted;
    for (std::size_t i = 0; i < outputs.size(); ++i)
      if ((without_output >> i & 1) != 0) unwanted.insert(i);
    MemoryNeeds needs;
    if (memory != nullptr)
      needs = memory({.inputs = specs,
                      .outputs = outputs,
                      .attributes = &attributes,
                      .destroyed = &destroyed,
                      .unwanted = &unwanted});
    workspace_bytes = needs.workspace_bytes;
    Values workspace({DType::u8, Shape{static_cast<std::int64_t>(needs.workspace_bytes)}});
    std::vector<Values> results;
    results.reserve(outputs.size());
    for (const Spec& spec : outputs) results.emplace_back(spec);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      out.push_back(results[i].buffer());
      if (unwanted.has(i)) out.back().data = nullptr;
    }
    flush_denormals_on_this_thread();  // as Workers do on theirs
    const Status status =
        kernel({.inputs = in,
                .outputs = out,
                .attributes = &attributes,
                .workspace = needs.workspace_bytes > 0 ? workspace.data() : nullptr,
                .destroyed = &destroyed});
    CHECK(status.ok());
    bool intact = workspace.guard_intact();
    for (const Values& v : inputs) intact = intact && v.guard_intact();
    for (const Values& v : results) intact = intact && v.guard_intact();
    CHECK(intact);
    return results;
  }
};

// The call gives the same bits with one, two and five threads.
inline void check_threads_agree(Call call) {
  std::vector<Values> first;
  const std::vector<Values> inputs = call.inputs;
  std::vector<Values> first_inputs;
  for (int threads : {1, 2, 5}) {
    const Threads here(threads);
    call.inputs = inputs;
    std::vector<Values> results = call.run();
    if (threads == 1) {
      first = std::move(results);
      first_inputs = call.inputs;
      continue;
    }
    for (std::size_t i = 0; i < results.size(); ++i) CHECK(results[i].same_bits(first[i]));
    for (std::size_t i = 0; i < inputs.size(); ++i)
      CHECK(call.inputs[i].same_bits(first_inputs[i]));
  }
}

}  // namespace ebb::tests
