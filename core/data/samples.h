#pragma once
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ebb/core/data/data_set.h"
#include "ebb/core/data/host_values.h"
#include "ebb/core/data/sample_reader.h"

namespace ebb::detail {

// Source of a loader's batches: a data set or a SampleReader.
class Samples {
 public:
  explicit Samples(DataSet data) : data_(std::move(data)), size_(data_->size()) {
    for (const Tensor& field : data_->fields()) {
      specs_.push_back(with_rows(field.impl()->spec, 1));
      values_.push_back(values_of(field));
    }
  }
  // Takes a reader that has been checked.
  explicit Samples(SampleReader reader) : read_(std::move(reader.read)), size_(reader.size) {
    for (const Spec& field : reader.fields) {
      specs_.push_back({field.dtype, {1}});
      for (const std::int64_t size : field.shape.dims()) specs_.back().shape.push_back(size);
    }
  }

  std::int64_t size() const noexcept { return size_; }
  // Spec of one sample of each field: [1, ...].
  const std::vector<Spec>& specs() const noexcept { return specs_; }
  bool are_read() const noexcept { return !data_; }
  // Writes one field of these samples, one behind the other.
  void gather(std::size_t field, std::span<const std::int64_t> rows, void* to) const {
    const std::size_t bytes = specs_[field].bytes();
    if (data_) return gather_rows(values_[field].data(), bytes, rows, to);
    auto* out = static_cast<std::byte*>(to);
    for (const std::int64_t row : rows) {
      read_(row, field, out);
      out += bytes;
    }
  }

 private:
  std::optional<DataSet> data_;  // or read_
  decltype(SampleReader::read) read_;
  std::int64_t size_ = 0;
  std::vector<Spec> specs_;
  std::vector<HostView> values_;  // of the data set's fields
};

}  // namespace ebb::detail
