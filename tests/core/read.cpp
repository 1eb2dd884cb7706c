// Host types that a tensor's values are read as.
#include <limits>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/base/half.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/tensor/tensor.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/line.h"

namespace ebb::tests {
namespace {

// Reads the values 0, 1 and 100 (1 from a bool) as T, or checks that T is refused.
template <class T>
void check_reading(const Tensor& x) {
  INFO("as a type of kind " << int{detail::host_type<T>().kind} << " and " << sizeof(T)
                            << " bytes");
  constexpr bool is_integral = std::is_integral_v<T>, is_bool = std::is_same_v<T, bool>;
  const bool from_bool = x.dtype() == DType::boolean;
  if (!from_bool && (is_bool || (is_integral && is_floating(x.dtype())))) {
    const std::string of = " of a tensor of " + x.to_string().substr(0, x.to_string().find(' '));
    CHECK_ERROR(x.item<T>({1}), Error, of + (is_bool ? "; x != 0" : "; item<float> reads it"));
    CHECK_ERROR(x.to_vector<T>(), Error, is_bool ? "; x != 0 is of bool" : "to_vector<float>");
    return;
  }
  const std::vector<T> all = x.to_vector<T>();
  for (std::size_t i = 0; i < 3; ++i) {
    const double wanted = i < 2 ? static_cast<double>(i) : from_bool ? 1 : 100;
    if constexpr (std::is_arithmetic_v<T>) {
      CHECK(static_cast<double>(static_cast<T>(all[i])) == wanted);
      CHECK(static_cast<double>(x.item<T>({static_cast<std::int64_t>(i)})) == wanted);
    } else {
      CHECK(static_cast<double>(static_cast<float>(all[i])) == wanted);
    }
  }
}

template <class... T>
void check_readings(const Tensor& x) {
  INFO(x.to_string());
  (check_reading<T>(x), ...);
}

}  // namespace

TEST_CASE("values are read as every type that has them, and as no other") {
  const Tensor numbers = Tensor::from({0, 1, 100});
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32, DType::i64,
                            DType::u8, DType::boolean})
    check_readings<float, double, long double, Float16, BFloat16, bool, char, signed char,
                   unsigned char, short, unsigned short, int, unsigned, long, unsigned long,
                   long long, unsigned long long, wchar_t>(cast(numbers, dtype));
}

TEST_CASE("an integer is read where the type has it, and rounded to a floating one") {
  const Tensor x = Tensor::from({-129, 300}), none = Tensor::zeros({0}, DType::i64);
  const std::string text = "300 is out of range of std::uint8_t; the tensor is i32[2] ";
  CHECK_ERROR(x.item<std::uint8_t>({1}), Error, "[item] " + text + line(__LINE__));
  CHECK_ERROR(x.to_vector<std::int8_t>(), Error, "[to_vector] -129 is out of range of std::int8_t");
  CHECK_ERROR(x.item<std::size_t>({0}), Error, "-129 is out of range of std::uint64_t");
  CHECK(x.to_vector<std::int16_t>() == std::vector<std::int16_t>{-129, 300});
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  CHECK(Tensor::from(most).item<std::uint64_t>() == static_cast<std::uint64_t>(most));
  CHECK(Tensor::from(most).item<double>() == 0x1p63);
  CHECK(Tensor::from(0.1).item<float>() == 0.1f);
  CHECK(none.to_vector<std::int8_t>().empty());
}

}  // namespace ebb::tests
