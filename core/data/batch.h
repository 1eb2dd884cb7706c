#pragma once
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ebb/core/tensor/tensor.h"

namespace ebb {

// Samples of a data set along the leading axis of each tensor. A batch of one or two fields can be
// taken apart: auto [x, y] = batch. With more fields that throws Error; index them by number.
struct Batch {
  Tensor input;                   // the data set's field 0
  Tensor target;                  // field 1; holds nothing if the data set has one field
  std::vector<Tensor> more = {};  // further fields: field 2 is more[0]

  // Field by number. Throws Error for a number out of range.
  const Tensor& operator[](IndexAt field) const;
};

namespace detail {
// The error for taking apart a batch of more than two fields.
[[noreturn]] void throw_more_fields(const Batch& batch, CallSite site);
}  // namespace detail

// References to the fields, so that the names in for (auto [x, y] : loader) are the fields
// themselves: x = Tensor() frees the input's memory.
template <std::size_t Field>
Tensor& get(Batch& batch, CallSite site = CallSite::here()) {
  static_assert(Field < 2);
  if (!batch.more.empty()) detail::throw_more_fields(batch, site);
  return Field == 0 ? batch.input : batch.target;
}
template <std::size_t Field>
const Tensor& get(const Batch& batch, CallSite site = CallSite::here()) {
  return get<Field>(const_cast<Batch&>(batch), site);
}
template <std::size_t Field>
Tensor&& get(Batch&& batch, CallSite site = CallSite::here()) {
  return std::move(get<Field>(batch, site));
}

namespace detail {
// Sets the fields of a batch one after the other, from 0 on.
inline void set_field(Batch& batch, std::size_t field, Tensor value) {
  if (field < 2)
    (field == 0 ? batch.input : batch.target) = std::move(value);
  else
    batch.more.push_back(std::move(value));
}
// Calls function(field) for each field of the batch.
template <class Function>
void for_fields(const Batch& batch, const Function& function) {
  function(batch.input);
  if (batch.target.defined()) function(batch.target);
  for (const Tensor& field : batch.more) function(field);
}
}  // namespace detail

// Splits a batch into parts of `rows` samples for accumulation; the last part may be shorter. Parts
// are views of the same memory. Throws Error for rows < 1 and for symbolic tensors.
std::vector<Batch> micro_batches(const Batch& batch, std::int64_t rows,
                                 CallSite site = CallSite::here());

}  // namespace ebb

template <>
struct std::tuple_size<ebb::Batch> : std::integral_constant<std::size_t, 2> {};
template <std::size_t Field>
struct std::tuple_element<Field, ebb::Batch> {
  using type = ebb::Tensor;
};
