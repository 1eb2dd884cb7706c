#pragma once
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ebb/core/tensor/tensor.h"

namespace ebb {

// Samples of a data set, the leading axis of each tensor. Of one or two fields it comes apart in
// two: auto [x, y] = batch. Of more fields that throws Error; they go by number.
struct Batch {
  Tensor input;                   // the data set's field 0
  Tensor target;                  // field 1; holds nothing where the data set has one alone
  std::vector<Tensor> more = {};  // those behind: field 2 is more[0]

  // By number. Throws Error for one that is not there.
  const Tensor& operator[](IndexAt field) const;
};

namespace detail {
// Where a batch of more fields than two is taken apart.
[[noreturn]] void throw_more_fields(const Batch& batch, CallSite site);
}  // namespace detail

// The fields themselves, so that the names of for (auto [x, y] : loader) are theirs: x = Tensor()
// lets go of the input's memory.
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
// The fields that a batch has.
template <class Function>
void for_fields(const Batch& batch, const Function& function) {
  function(batch.input);
  if (batch.target.defined()) function(batch.target);
  for (const Tensor& field : batch.more) function(field);
}
}  // namespace detail

// A batch in parts of `rows` samples, the last of as many as are left, to accumulate over: views of
// the same memory. Throws Error for rows < 1 and for symbolic tensors.
std::vector<Batch> micro_batches(const Batch& batch, std::int64_t rows,
                                 CallSite site = CallSite::here());

}  // namespace ebb

template <>
struct std::tuple_size<ebb::Batch> : std::integral_constant<std::size_t, 2> {};
template <std::size_t Field>
struct std::tuple_element<Field, ebb::Batch> {
  using type = ebb::Tensor;
};
