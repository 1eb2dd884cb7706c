// Printed tensors.
#include <sstream>

#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/device/test_device.h"

namespace ebb::tests {
namespace {

template <class T>
std::string printed(const T& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

// The printed values without the spec.
std::string values(const Tensor& x) {
  const std::string text = printed(x), spec = "  " + x.to_string();
  REQUIRE(text.ends_with(spec));
  return text.substr(0, text.size() - spec.size());
}

Tensor counted(std::int64_t count) {
  std::vector<float> numbers;
  for (std::int64_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(i));
  return Tensor::from(numbers, {count});
}

}  // namespace

TEST_CASE("dtypes, devices and what is known of a tensor are printed by their names") {
  CHECK(printed(DType::bf16) == "bf16");
  CHECK(printed(DType::boolean) == "bool");
  CHECK(printed(Device::cpu()) == "cpu");
  CHECK(printed(Spec{DType::i64, {2, -1}}) == "i64[2, ?]");
  CHECK(printed(Tensor::full({2}, 0.5, DType::f16).item<Float16>({1})) == "0.5");
  CHECK(printed(Tensor::full({}, -3, DType::bf16).item<BFloat16>()) == "-3");
}

TEST_CASE("a tensor is printed row by row, each number as wide as the widest") {
  CHECK(printed(Tensor::full({}, 2.5)) == "2.5");
  CHECK(values(Tensor::from({1.f, -2.f, 1.f / 3})) == "[     1,     -2, 0.3333]");
  CHECK(values(Tensor::from({{1, 2, 3}, {4, 50, 6}})) == "[[ 1,  2,  3],\n [ 4, 50,  6]]");
  CHECK(values(reshape(counted(8), {2, 2, 2})) == "[[[0, 1],\n  [2, 3]],\n\n [[4, 5],\n  [6, 7]]]");
  CHECK(values(slice(counted(8), 3, 5)) == "[3, 4]");
  CHECK(values(Tensor::zeros({0})) == "[]");
  CHECK(values(Tensor::zeros({2, 0})) == "[]");
  CHECK(values(Tensor::zeros({1'000'000'000, 0})) == "[]");
}

TEST_CASE("every dtype is printed as what it is") {
  const Tensor x = Tensor::from({0.f, 1.f, 3.f});
  for (const DType dtype : {DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64, DType::u8})
    CHECK(values(cast(x, dtype)) == "[0, 1, 3]");
  CHECK(values(cast(x, DType::boolean)) == "[false,  true,  true]");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(values(Tensor::from({nan, -nan, std::numeric_limits<float>::infinity(), 1e10f})) ==
        "[  nan,   nan,   inf, 1e+10]");
  const std::int64_t large = (std::int64_t{1} << 60) + 1;
  CHECK(values(Tensor::from({large})) == "[1152921504606846977]");
}

TEST_CASE("of a large tensor the ends of each axis are printed") {
  CHECK(values(counted(1000)).find("...") == std::string::npos);
  CHECK(values(counted(1001)) == "[   0,    1,    2, ...,  998,  999, 1000]");
  CHECK(values(reshape(counted(4000), {500, 8})) ==
        "[[   0,    1,    2, ...,    5,    6,    7],\n"
        " [   8,    9,   10, ...,   13,   14,   15],\n"
        " [  16,   17,   18, ...,   21,   22,   23],\n"
        " ...,\n"
        " [3976, 3977, 3978, ..., 3981, 3982, 3983],\n"
        " [3984, 3985, 3986, ..., 3989, 3990, 3991],\n"
        " [3992, 3993, 3994, ..., 3997, 3998, 3999]]");
  CHECK(values(reshape(counted(1200), {200, 6}))
            .starts_with("[[   0,    1,    2,    3,    4,    5],"));
  CHECK(values(reshape(counted(2000), {2, 1000})) ==
        "[[   0,    1,    2, ...,  997,  998,  999],\n"
        " [1000, 1001, 1002, ..., 1997, 1998, 1999]]");
}

TEST_CASE("what has no values is printed as what is known of it") {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 3});
  CHECK(printed(x) == "symbolic f32[?, 3]");
  CHECK(printed(Tensor()) == "a tensor that holds nothing");
  CHECK(printed(Tensor::zeros({2}, DType::f32, Device::simulated("h200", 1 << 30))) ==
        "f32[2] on sim:h200");
  CHECK(printed(x.shape()) == "[?, 3]");
  const Tensor torn = Tensor::zeros({2});
  torn.impl()->storage->tear("an update");
  CHECK_ERROR(printed(torn), Error, "[print] a tensor was being updated by an update when");
}

TEST_CASE("plans, predictions and gradient checks are printed in lines of figures") {
  EBB_SKIP_WITH_LARGE_PAGES();
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 1024});
  const Tensor y = softmax(x) + softmax(x * 2);
  const std::string plan = printed(graph.plan({y}, {{x, {256, 1024}}}, Device::cpu()));
  INFO(plan);
  CHECK(plan.starts_with("peak                    2.0 MiB\n"));
  CHECK(plan.find("\narena                   2.0 MiB\n") != plan.npos);
  CHECK(plan.find("\nmost at") != plan.npos);
  memory::Plan bounded;
  bounded.unbudgeted_bytes = bounded.host_state_bytes = 1024;
  bounded.is_reordered = true;
  bounded.page_locked_bytes = 2048;
  const std::string text = printed(bounded);
  CHECK(text.find("\norder of nodes          changed\n") != text.npos);
  CHECK(text.ends_with("\n  optimizer state       1.0 KiB\n  page-locked           2.0 KiB"));
  const auto make = [](Device device) { Tensor::zeros({1 << 18}, DType::f32, device); };
  const std::string large = printed(memory::predict(Device::simulated("cpu", 1 << 30), make)),
                    small = printed(memory::predict(Device::simulated("cpu", 1 << 19), make));
  INFO(large << "\n" << small);
  CHECK(large.starts_with("peak                    1.0 MiB\n"));
  CHECK(large.ends_with("\nit fits"));
  CHECK(small.ends_with("\nit does not fit: 512.0 KiB are missing"));
  const Tensors at = {Tensor::from({0.5})};
  CHECK(printed(check_gradient([](const Tensors& in) { return sum(square(in[0])); }, at))
            .starts_with("agrees to "));
  const std::string wrong =
      printed(check_gradient([](const Tensors& in) { return sum(in[0] * in[0].detach()); }, at));
  CHECK(wrong.starts_with("differs by 0.5, input 0"));
}

}  // namespace ebb::tests
