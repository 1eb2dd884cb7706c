#include "ebb/core/data/batch.h"

#include <algorithm>

#include "ebb/core/base/error.h"
#include "ebb/core/data/host_values.h"

namespace ebb {

const Tensor& Batch::operator[](IndexAt field) const {
  if (field.index == 0) return input;
  if (field.index == 1 && target.defined()) return target;
  if (field.index >= 2 && field.index - 2 < static_cast<std::int64_t>(more.size()))
    return more[static_cast<std::size_t>(field.index - 2)];
  detail::refuse("Batch",
                 "has fields 0 to " + std::to_string(target.defined() ? more.size() + 1 : 0) +
                     ", and no " + std::to_string(field.index),
                 field.site);
}

void detail::throw_more_fields(const Batch& batch, CallSite site) {
  refuse("Batch",
         "has " + std::to_string(batch.more.size() + 2) +
             " fields and comes apart in two only where it has no more; take batch[0], batch[1] "
             "and so on",
         site);
}

std::vector<Batch> micro_batches(const Batch& batch, std::int64_t rows, CallSite site) {
  const detail::CallSiteScope at(site);
  if (rows < 1)
    detail::refuse("micro_batches",
                   "takes parts of at least 1 sample, not " + std::to_string(rows));
  const auto check = [](const Tensor& field) {
    if (!field.defined() || field.is_symbolic() || field.rank() == 0)
      detail::refuse("micro_batches", "takes a batch with samples, not " + field.to_string());
  };
  check(batch.input);
  const std::int64_t count = batch.input.shape()[0];
  std::vector<Batch> parts;
  for (std::int64_t first = 0; first < count; first += rows) {
    const auto part_of = [&](const Tensor& field) {
      if (&field == &batch.target && !field.defined()) return Tensor();
      check(field);
      if (field.shape()[0] != count)
        detail::refuse<ShapeError>("micro_batches", "takes as many samples in each field, not " +
                                                        batch.input.to_string() + " and " +
                                                        field.to_string());
      return detail::rows_of(field, first, std::min(first + rows, count));
    };
    Batch part{part_of(batch.input), part_of(batch.target)};
    for (const Tensor& field : batch.more) part.more.push_back(part_of(field));
    parts.push_back(std::move(part));
  }
  return parts;
}

}  // namespace ebb
