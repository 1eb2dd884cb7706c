#include "ebb/kernels/cpu/transpose.h"

#include <cstddef>
#include <vector>

#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using Bytes = std::vector<std::byte>;

// The bytes of `rows` rows, `gap` units apart; of the last one no more than it has.
template <int kUnit>
std::size_t bytes_of_rows(std::int64_t rows, std::int64_t columns, std::int64_t gap) {
  return static_cast<std::size_t>(kUnit * (rows * (columns + gap) - gap));
}

// With memory of just the matrices' size, so that AddressSanitizer sees what is beyond.
template <int kUnit>
bool is_transposed(std::int64_t rows, std::int64_t columns, std::int64_t gap) {
  Bytes from(bytes_of_rows<kUnit>(rows, columns, gap));
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<std::byte>(i * 37 % 251);
  constexpr std::byte kUntouched{255};
  Bytes to(bytes_of_rows<kUnit>(columns, rows, gap), kUntouched), expected = to;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      std::copy_n(from.begin() + kUnit * (row * (columns + gap) + column), kUnit,
                  expected.begin() + kUnit * (column * (rows + gap) + row));
  cpu::copy_block<kUnit>(from.data(), to.data(), rows, columns,
                         {kUnit * (columns + gap), kUnit * (rows + gap)});
  return to == expected;
}

}  // namespace

TEST_CASE("Matrices of any size are transposed, and nothing beside them is read or written") {
  for (const std::int64_t gap : {0, 3})
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 7, 16, 17, 35, 66})
      for (const std::int64_t columns : {1, 2, 3, 4, 6, 8, 15, 18, 37, 150}) {
        CAPTURE(gap, rows, columns);
        CHECK(is_transposed<1>(rows, columns, gap));
        CHECK(is_transposed<2>(rows, columns, gap));
        CHECK(is_transposed<4>(rows, columns, gap));
        CHECK(is_transposed<8>(rows, columns, gap));
        CHECK(is_transposed<16>(rows, columns, gap));
      }
}

}  // namespace ebb::tests
