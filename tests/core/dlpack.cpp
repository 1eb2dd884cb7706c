// Tensors in other libraries' memory, and ebb's tensors for other libraries.
#include "ebb/core/tensor/dlpack.h"

#include <cstring>
#include <nlohmann/json.hpp>
#include <numeric>

#include "ebb/core/base/error.h"
#include "ebb/core/base/half.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/memory/summary.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/graph/compile.h"
#include "ebb/graph/session.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/line.h"
#include "ebb/third_party/dlpack/dlpack.h"

using namespace ebb;
using namespace ebb::literals;

namespace {

constexpr DLDataType kF32 = {kDLFloat, 32, 1};
constexpr DLDevice kNoGpu = {kDLCUDA, 77};

// A tensor of another library in memory of the test. Counts calls of its deleter.
template <class Managed>
struct Lent : Managed {
  Lent(void* data, std::vector<std::int64_t> of, std::vector<std::int64_t> in = {})
      : Managed{}, sizes(std::move(of)), strides(std::move(in)) {
    this->dl_tensor = {data, {kDLCPU, 0},  static_cast<int>(sizes.size()),
                       kF32, sizes.data(), strides.empty() ? nullptr : strides.data(),
                       0};
    this->deleter = [](Managed* self) { ++static_cast<Lent*>(self)->deleted; };
  }
  Lent(const Lent&) = delete;

  std::vector<std::int64_t> sizes, strides;
  int deleted = 0;
};

struct LentReadOnly : Lent<DLManagedTensorVersioned> {
  explicit LentReadOnly(float* data, std::int64_t size) : Lent(data, {size}) {
    version = {DLPACK_MAJOR_VERSION, 99};
    flags = DLPACK_FLAG_BITMASK_READ_ONLY;
  }
};

std::size_t borrowed() {
  return nlohmann::json::parse(memory::summary_json(Device::cpu()))["borrowed_bytes"];
}

// Poisons memory of the CPU for a scope.
struct Poison {
  Poison() { Device::cpu().runtime().set_poisons(true); }
  ~Poison() { Device::cpu().runtime().set_poisons(EBB_POISON); }
};

}  // namespace

TEST_CASE("a borrowed tensor is its lender's memory until the last view of it goes", "[host]") {
  const Poison poison;
  float values[] = {1, 2, 3, 4};
  Lent<DLManagedTensor> lent(values, {2, 2});
  const std::size_t allocated = memory::stats(Device::cpu()).allocated.current;
  Tensor part;
  {
    const Tensor x = from_dlpack(&lent);
    CHECK(detail::data(x) == values);
    CHECK(x.to_string() == "f32[2, 2] on cpu");
    CHECK(memory::stats(Device::cpu()).allocated.current == allocated);
    CHECK(borrowed() == 16);
    CHECK(memory::summary(Device::cpu()).find(" besides 16 B borrowed from other libraries\n") !=
          std::string::npos);
    values[3] = 5;
    CHECK(x.item<float>({1, 1}) == 5);
    add_assign(x, 10);
    CHECK(values[0] == 11);
    part = slice(x, 1, 2);
    const Tensor w = x.with_grad();
    sum(square(w)).backward();
    CHECK(w.grad().to_vector<float>() == std::vector<float>{22, 24, 26, 30});
  }
  CHECK(lent.deleted == 0);
  CHECK(part.to_vector<float>() == std::vector<float>{13, 15});
  part = Tensor();
  CHECK(lent.deleted == 1);
  CHECK(borrowed() == 0);
  CHECK(values[3] == 15);
}

TEST_CASE("no operator takes the memory of a borrowed temporary for its result", "[host]") {
  float values[] = {1, 2};
  Lent<DLManagedTensor> lent(values, {2});
  const Tensor doubled = 2 * (from_dlpack(&lent) + 1);
  CHECK(values[0] == 1);
  CHECK(lent.deleted == 1);
  const Tensor w = Tensor::from({3.f, 4.f}).with_grad();
  Lent<DLManagedTensor> factor(values, {2});
  sum(w * from_dlpack(&factor)).backward();
  add_assign(w.grad(), 1);
  CHECK(values[1] == 2);
}

TEST_CASE("a tensor of DLPack that is refused is an Error here, and deleted once", "[host]") {
  const Poison poison;
  alignas(8) float values[8] = {};
  struct {
    const char* text;
    void (*change)(Lent<DLManagedTensor>&);
  } const cases[] = {
      {"code 2 with 8 bits", [](auto& of) { of.dl_tensor.dtype.bits = 8; }},
      {"code 5 with 32 bits", [](auto& of) { of.dl_tensor.dtype.code = kDLComplex; }},
      {"2 lanes", [](auto& of) { of.dl_tensor.dtype.lanes = 2; }},
      {"device type 10", [](auto& of) { of.dl_tensor.device.device_type = kDLROCM; }},
      {"cuda", [](auto& of) { of.dl_tensor.device = kNoGpu; }},
      {"dimensions", [](auto& of) { of.sizes.resize(of.dl_tensor.ndim = 7, 1); }},
      {"-1 axes without sizes", [](auto& of) { of.dl_tensor.ndim = -1; }},
      {"2 axes without sizes", [](auto& of) { of.dl_tensor.shape = nullptr; }},
      {"size -1", [](auto& of) { of.sizes[0] = -1; }},
      {"-2", [](auto& of) { of.sizes[0] = -2; }},
      {"more elements", [](auto& of) { of.sizes.assign(2, 1LL << 40); }},
      {"no memory", [](auto& of) { of.dl_tensor.data = nullptr; }},
      {"{.copy = true}", [](auto& of) { of.dl_tensor.byte_offset = 2; }},
      {"aligned", [](auto& of) { of.dl_tensor.dtype.bits = 64, of.dl_tensor.byte_offset = 4; }},
      {"contiguous", [](auto& of) { of.strides[0] = 1; }},
      {"a stride of", [](auto& of) { of.strides[1] = INT64_MAX; }},
  };
  for (const auto& [text, change] : cases) {
    INFO(text);
    Lent<DLManagedTensor> lent(values, {2, 2}, {2, 1});
    change(lent);
    if (lent.dl_tensor.shape) lent.dl_tensor.shape = lent.sizes.data();
    lent.dl_tensor.strides = lent.strides.data();
    CHECK_ERROR_HERE(from_dlpack(&lent), Error, text);
    CHECK(lent.deleted == 2);  // the check above makes each call twice
  }
  LentReadOnly other(values, 2);
  other.version.major = 2;
  other.dl_tensor.ndim = 99;
  CHECK_ERROR_HERE(from_dlpack(&other), Error, "of DLPack 2; ebb reads version 1");
  CHECK(other.deleted == 2);
  Lent<DLManagedTensor> traced(values, {2});
  CHECK_ERROR_HERE(
      compile([&](const Tensor& x) { return x + from_dlpack(&traced); })(Tensor::zeros({2})), Error,
      "while compile() traces");
  CHECK(traced.deleted == 2);
  CHECK_ERROR_HERE(from_dlpack(static_cast<DLManagedTensor*>(nullptr)), Error, "null pointer");
  CHECK(borrowed() == 0);
}

TEST_CASE("a copy of a tensor of DLPack takes any strides and addresses", "[host]") {
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.f);
  const auto check = [](Lent<DLManagedTensor>&& lent, const std::vector<float>& wanted) {
    const Tensor x = from_dlpack(&lent, {.copy = true});
    CHECK(lent.deleted == 1);
    CHECK(borrowed() == 0);
    CHECK(x.to_vector<float>() == wanted);
  };
  check({values.data(), {2, 2}}, {0, 1, 2, 3});
  check({values.data(), {2, 3}, {1, 2}}, {0, 2, 4, 1, 3, 5});
  check({values.data() + 5, {2, 2}, {-3, -1}}, {5, 4, 2, 1});
  check({values.data(), {2, 2, 2}, {12, 0, 1}}, {0, 1, 0, 1, 12, 13, 12, 13});
  check({values.data(), {0, 3}, {7, 7}}, {});
  std::vector<std::byte> bytes(13);
  std::memcpy(bytes.data() + 1, values.data() + 1, 12);
  check({bytes.data() + 1, {3}}, {1, 2, 3});
}

TEST_CASE("memory that its lender made read-only is read, never updated", "[host]") {
  float values[] = {1, 2};
  LentReadOnly lent(values, 2);
  {
    const Tensor x = from_dlpack(&lent);
    CHECK((x + 1).to_vector<float>() == std::vector<float>{2, 3});
    CHECK_ERROR_HERE(assign(x, x + 1), Error, "made read-only; clone() it");
    CHECK_ERROR_HERE(add_assign(slice(x, 0, 1), 1), Error, "made read-only");
    Graph graph;
    const Tensor y = graph.placeholder("y", DType::f32, {2});
    CHECK_ERROR_HERE(assign(x, y), Error, "made read-only");
    CHECK_ERROR_HERE(
        compile([&](const Tensor& z) { return assign(slice(x, 0, 1), z); })(Tensor::zeros({1})),
        Error, "made read-only");
    CHECK_ERROR_HERE(to_dlpack_unversioned(x), Error, "made read-only");
    CHECK_ERROR_HERE(assign(from_dlpack(to_dlpack(x)), x), Error, "made read-only");
  }
  CHECK(lent.deleted == 1);
  CHECK(values[0] == 1);
}

TEST_CASE("sessions and compiled steps take borrowed tensors", "[host]") {
  float values[] = {1, 2};
  Lent<DLManagedTensor> lent(values, {2}), captured(values, {2});
  {
    const Tensor x = from_dlpack(&lent), count = from_dlpack(&captured);
    Graph graph;
    const Tensor y = graph.placeholder("y", DType::f32, {2});
    const Tensor next = assign(count, y * 3);
    Session session(graph);
    CHECK(session.run(y * 2, {{y, x}}).to_vector<float>() == std::vector<float>{2, 4});
    session.run(next, {{y, Tensor::from({1.f, 5.f})}});
    CHECK(values[1] == 15);
    const auto step = compile([](const Tensor& a) { return a + 1; });
    CHECK(step(x).to_vector<float>() == std::vector<float>{4, 16});
    values[0] = 0;
    CHECK(step(x).item<float>({0}) == 1);
  }
  CHECK(lent.deleted + captured.deleted == 2);
}

TEST_CASE("a tensor of DLPack in pinned memory, without a deleter, is one of the CPU", "[host]") {
  float values[] = {1, 2};
  Lent<DLManagedTensor> lent(values, {2});
  lent.dl_tensor.device.device_type = kDLCUDAHost;
  lent.deleter = nullptr;
  CHECK(from_dlpack(&lent).to_vector<float>() == std::vector<float>{1, 2});
}

TEST_CASE("a tensor for another library keeps its block until the deleter is called") {
  const std::size_t allocated = memory::stats(Device::cpu()).allocated.current;
  DLManagedTensorVersioned* theirs = nullptr;
  {
    const Tensor x = Tensor::full({1024, 1024}, 3);
    theirs = to_dlpack(slice(x, 1, 3));
    DLManagedTensor* const again = to_dlpack_unversioned(x);
    again->deleter(again);
  }
  CHECK(memory::stats(Device::cpu()).allocated.current == allocated + 4_MiB);
  const DLTensor& of = theirs->dl_tensor;
  CHECK(std::vector(of.shape, of.shape + of.ndim) == std::vector<std::int64_t>{2, 1024});
  CHECK(std::vector(of.strides, of.strides + of.ndim) == std::vector<std::int64_t>{1024, 1});
  CHECK(from_dlpack(theirs).item<float>({1, 1023}) == 3);
  CHECK(memory::stats(Device::cpu()).allocated.current == allocated);
}

TEST_CASE("every dtype goes out and in by DLPack; what has no values does not go") {
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64,
                            DType::u8, DType::boolean}) {
    const Tensor x = cast(Tensor::from({1.f, 0.f, 1.f}), dtype);
    const Tensor y = from_dlpack(to_dlpack(x));
    CHECK(y.dtype() == dtype);
    CHECK(detail::data(y) == detail::data(x));
    CHECK(cast(y, DType::f32).to_vector<float>() == std::vector<float>{1, 0, 1});
    CHECK(detail::data(from_dlpack(to_dlpack_unversioned(x))) == detail::data(x));
  }
  DLManagedTensorVersioned* const turned = to_dlpack(Tensor::from({{1, 2}, {3, 4}}));
  std::swap(turned->dl_tensor.strides[0], turned->dl_tensor.strides[1]);
  CHECK(from_dlpack(turned, {.copy = true}).to_vector<int>() == std::vector<int>{1, 3, 2, 4});
  CHECK(from_dlpack(to_dlpack(Tensor::from(2.f))).item<float>() == 2);
  CHECK(from_dlpack(to_dlpack(Tensor::zeros({0, 3}))).shape() == Shape{0, 3});
  Graph graph;
  CHECK_ERROR_HERE(to_dlpack(graph.placeholder("y", DType::f32, {2})), Error, "has no values");
  CHECK_ERROR_HERE(to_dlpack(Tensor()), Error, "has no values");
  const Tensor torn = Tensor::zeros({2});
  CHECK_ERROR_HERE(compile([&](const Tensor& x) { return to_dlpack(torn), x + 1; })(torn), Error,
                   "while compile() traces");
  torn.impl()->storage->tear("half");
  CHECK_ERROR_HERE(to_dlpack(torn), Error, "half");
  CHECK_ERROR_HERE(to_dlpack(Tensor::zeros({2}, DType::f32, Device::cpu().twin())), SimulatedRead,
                   "is simulated");
}
