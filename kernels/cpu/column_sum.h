#pragma once
#include <cstddef>
#include <cstdint>

namespace ebb::cpu {

// out[j] = the sum over rows of in[rows, columns] (or += with accumulate), contiguous, over all
// threads: f32 sums of up to 64 rows, added up in f64, in an order fixed by the shape. scratch of
// column_sum_bytes, aligned to 8 bytes; none is needed unless the matrix is tall and narrow.
std::size_t column_sum_bytes(std::int64_t rows, std::int64_t columns) noexcept;
template <class T>
void column_sum(const T* in, std::int64_t rows, std::int64_t columns, T* out, void* scratch,
                bool accumulate = false);

}  // namespace ebb::cpu
