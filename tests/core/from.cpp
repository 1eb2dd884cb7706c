// Tensors from host values of any type.
#include <array>
#include <limits>
#include <span>
#include <type_traits>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/base/half.h"
#include "ebb/core/tensor/tensor.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/line.h"

namespace ebb::tests {
namespace {

template <class T>
void check_stored(DType dtype) {
  const Tensor tensor = Tensor::from(std::vector<T>{T(0), T(1), T(100)});
  CHECK(tensor.dtype() == dtype);
  CHECK(tensor.to_vector<double>() == std::vector<double>{0, 1, 100});
}

}  // namespace

TEST_CASE("integers that are no dtype become the next one that holds them") {
  check_stored<std::size_t>(DType::i64);
  check_stored<long long>(DType::i64);
  check_stored<unsigned>(DType::i64);
  check_stored<short>(DType::i32);
  check_stored<unsigned short>(DType::i32);
  check_stored<signed char>(DType::i32);
  CHECK(Tensor::from(std::vector<std::uint8_t>{7}).dtype() == DType::u8);
  CHECK(Tensor::from({std::size_t{1}, std::size_t{2}}).dtype() == DType::i64);
  CHECK(Tensor::from({{1ll, 2ll}, {3ll, 4ll}}).shape() == Shape{2, 2});
  const std::vector<std::uint64_t> large{1, std::uint64_t{1} << 63};
  CHECK_ERROR_HERE(Tensor::from(large), Error, "[from] an integer is beyond the range of i64");
}

TEST_CASE("values in braces take a shape, and are flags only where they are bool") {
  const Tensor ones_and_zeros = Tensor::from({1, 0, 1, 1}, {2, 2});
  CHECK(ones_and_zeros.dtype() == DType::i32);
  CHECK(ones_and_zeros.shape() == Shape{2, 2});
  CHECK(ones_and_zeros.to_vector<std::int32_t>() == std::vector<std::int32_t>{1, 0, 1, 1});
  const Shape shape = {2, -1};
  CHECK(Tensor::from({1.f, 2.f, 3.f, 4.f}, shape).shape() == Shape{2, 2});
  CHECK(Tensor::from({1., 2.}, {2, 1}).dtype() == DType::f64);
  CHECK(Tensor::from({3.f}, {}).shape() == Shape{});
  CHECK(Tensor::from({true, false}, {1, 2}).dtype() == DType::boolean);
  CHECK(Tensor::from({1, 2}, {2}, Device::parse("sim:cpu:1GiB")).device().is_simulated());
  CHECK_ERROR(Tensor::from({1, 2, 3}, {2, 2}), ShapeError, line(__LINE__));
}

// Only a named tensor can be assigned to: x[0] = y would change nothing.
static_assert(std::is_assignable_v<Tensor&, Tensor> &&
              std::is_assignable_v<Tensor&, const Tensor&>);
static_assert(!std::is_assignable_v<Tensor, Tensor> &&
              !std::is_assignable_v<Tensor, const Tensor&>);

TEST_CASE("a vector of bool, an array and a span are values as well") {
  const Tensor flags = Tensor::from(std::vector<bool>{true, false, true, true}, {2, -1});
  CHECK(flags.dtype() == DType::boolean);
  CHECK(flags.shape() == Shape{2, 2});
  CHECK(flags.to_vector<std::uint8_t>() == std::vector<std::uint8_t>{1, 0, 1, 1});
  CHECK(Tensor::from(std::vector<bool>()).shape() == Shape{0});
  const Device there = Device::parse("sim:cpu:1GiB");
  CHECK(Tensor::from(std::vector<bool>{true}, {1}, there).device() == there);
  CHECK_ERROR(Tensor::from(std::vector<bool>{true}, {2}), ShapeError, line(__LINE__));
  const std::array<const double, 2> pair{1, 2};
  CHECK(Tensor::from(pair).to_vector<double>() == std::vector<double>{1, 2});
  const float plain[] = {1, 2, 3};
  CHECK(Tensor::from(plain).shape() == Shape{3});
  CHECK(Tensor::from(std::span(plain).first(1), {}).shape() == Shape{});
  CHECK(Tensor::from(std::vector<BFloat16>(2)).dtype() == DType::bf16);
}

TEST_CASE("a number is a tensor without axes") {
  CHECK(Tensor::from(3.f).shape() == Shape{});
  CHECK(Tensor::from(3.f).item<float>() == 3);
  CHECK(Tensor::from(2.5).dtype() == DType::f64);
  CHECK(Tensor::from(2.5).item<double>() == 2.5);
  CHECK(Tensor::from(7).dtype() == DType::i32);
  CHECK(Tensor::from(std::size_t{7}).item<std::int64_t>() == 7);
  CHECK(Tensor::from(true).dtype() == DType::boolean);
  CHECK(Tensor::from(3.f, Device::parse("sim:cpu:1GiB")).device().is_simulated());
  CHECK_ERROR(Tensor::from(std::numeric_limits<std::uint64_t>::max()), Error, line(__LINE__));
}

TEST_CASE("one dimension is what the values fill, and shapes that they do not fill are refused") {
  const std::vector<float> six(6);
  CHECK(Tensor::from(six, {-1, 3}).shape() == Shape{2, 3});
  CHECK(Tensor::from(six, {2, -1, 1}).shape() == Shape{2, 3, 1});
  CHECK(Tensor::from(std::vector<float>(), {-1, 3}).shape() == Shape{0, 3});
  const auto refuses = [&](const Shape& shape) {
    CHECK_ERROR_HERE(Tensor::from(six, shape), ShapeError,
                     "6 values do not fill the shape " + shape.to_string());
  };
  refuses({5});
  refuses({});
  refuses({-1, 4});
  refuses({-1, 0});
  refuses({-1, -1});
  refuses({std::int64_t{1} << 40, std::int64_t{1} << 40});
  refuses({-1, std::int64_t{1} << 40, std::int64_t{1} << 40});
}

}  // namespace ebb::tests
