#include "ebb/core/data/data_set.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "ebb/core/base/error.h"
#include "ebb/core/data/host_values.h"
#include "ebb/core/random/random_key.h"
#include "ebb/core/tensor/tape_mode.h"

namespace ebb {

namespace {

constexpr const char* kDataSet = "DataSet";

template <class E = Error>
[[noreturn]] void fail(const std::string& text) {
  detail::refuse<E>(kDataSet, text);
}

bool is_on_host(const Tensor& tensor) {
  return tensor.defined() && !tensor.is_symbolic() && !detail::is_shape_only(*tensor.impl()) &&
         tensor.device() == Device::cpu();
}

void check_on_host(const Tensor& tensor, const std::string& which) {
  if (!is_on_host(tensor))
    fail("takes " + which + " with values on the CPU, not " + tensor.to_string());
  if (tensor.rank() == 0)
    fail<ShapeError>("takes " + which + " with one row a sample, not " + tensor.to_string());
}

Spec sample_of(const Tensor& field) noexcept { return detail::with_rows(field.impl()->spec, 1); }

Tensor allocate(const Tensor& like, std::int64_t rows) {
  const Spec spec = detail::with_rows(like.impl()->spec, rows);
  if (!spec.shape.is_countable()) fail<ShapeError>(detail::too_large(spec.shape));
  return detail::allocate(spec, Device::cpu(), memory::Category::input,
                          detail::tag(kDataSet, detail::entry()));
}

// Calls the user's function with recording off. Errors inside it keep their own line.
template <class... Arguments>
Tensors call(const std::function<Tensors(Arguments...)>& function,
             const std::type_identity_t<Arguments>&... arguments) {
  const detail::TapeModeScope mode(detail::without_history());
  const detail::CallSiteScope own({}, detail::CallSiteScope::innermost);
  return function(arguments...);
}

// Copies all rows of `from` to the rows of `to` that begin at `row`.
void copy_rows(const Tensor& from, const Tensor& to, std::int64_t row) {
  if (from.bytes() == 0) return;
  const HostView values = detail::values_of(from);
  to.impl()->storage->write(static_cast<std::size_t>(row) * sample_of(to).bytes(), from.bytes(),
                            [&](void* place) { std::memcpy(place, values.data(), from.bytes()); });
}

// Calls function(pointer to the first value) with the type of a floating tensor's values.
template <class Function>
void with_values(const Tensor& tensor, Function&& function) {
  if (!is_floating(tensor.dtype()) || size_of(tensor.dtype()) < 4)
    fail("scales inputs of f32 or f64, not " + tensor.to_string());
  const HostView values = detail::values_of(tensor);
  if (tensor.dtype() == DType::f32)
    function(values.as<float>());
  else
    function(values.as<double>());
}

// Copies `inputs` with each value replaced by function(value, column).
template <class Function>
Tensor transformed(const Tensor& inputs, Function&& function) {
  Tensor result;
  with_values(inputs, [&]<class T>(const T* from) {
    result = detail::make_input<T>(inputs.shape(), kDataSet, [&](T* to) {
      const auto columns = static_cast<std::size_t>(sample_of(inputs).shape.elements());
      const auto count = static_cast<std::size_t>(inputs.elements());
      for (std::size_t i = 0; i < count; ++i)
        to[i] = static_cast<T>(function(static_cast<double>(from[i]), i % columns));
    });
  });
  return result;
}

Tensors gather(const DataSet& data, std::span<const std::int64_t> rows) {
  Tensors picked;
  for (const Tensor& from : data.fields()) {
    Tensor to = allocate(from, static_cast<std::int64_t>(rows.size()));
    const HostView values = detail::values_of(from);
    to.impl()->storage->write(0, to.bytes(), [&](void* place) {
      detail::gather_rows(values.data(), sample_of(from).bytes(), rows, place);
    });
    picked.push_back(std::move(to));
  }
  return picked;
}

// Rows [first, last) of each field, in the same memory.
Tensors views(const DataSet& data, std::int64_t first, std::int64_t last) {
  Tensors parts;
  for (const Tensor& field : data.fields()) parts.push_back(detail::rows_of(field, first, last));
  return parts;
}

// Throws unless the fields of a part are like `fields`, to which it is to be joined.
void check_alike(const Tensors& part, const std::vector<Tensor>& fields, const char* which) {
  if (part.size() != fields.size())
    fail<ShapeError>(std::string("takes ") + which + " with as many fields each, not " +
                     std::to_string(fields.size()) + " and " + std::to_string(part.size()));
  for (std::size_t i = 0; i < fields.size(); ++i)
    if (!(sample_of(part[i]) == sample_of(fields[i])))
      fail<ShapeError>(std::string("takes ") + which + " that are alike: field " +
                       std::to_string(i) + " is " + fields[i].to_string() + " and then " +
                       part[i].to_string());
}

}  // namespace

DataSet::DataSet(std::vector<Tensor> fields) : fields_(std::move(fields)) {
  if (fields_.empty()) fail("takes at least one field");
  const bool is_pair = fields_.size() == 2;
  for (const Tensor& field : fields_) {
    check_on_host(field, !is_pair ? "fields" : &field == &fields_[0] ? "inputs" : "targets");
    if (field.shape()[0] != size())
      fail<ShapeError>(std::string("takes ") +
                       (is_pair ? "as many inputs as targets" : "fields of as many samples each") +
                       ", not " + fields_[0].to_string() + " and " + field.to_string());
  }
}

DataSet::DataSet(Tensor inputs, Tensor targets, CallSite site)
    : DataSet(of({std::move(inputs), std::move(targets)}, site)) {}

DataSet DataSet::of(const Tensors& fields, CallSite site) {
  const detail::CallSiteScope at(site);
  return DataSet(std::vector<Tensor>(fields.begin(), fields.end()));
}

const Tensor& DataSet::targets(CallSite site) const {
  const detail::CallSiteScope at(site);
  if (fields_.size() < 2) fail("has inputs alone, and no targets");
  return fields_[1];
}

DataSet DataSet::with_inputs(Tensor inputs) const {
  std::vector<Tensor> fields = fields_;
  fields.front() = std::move(inputs);
  return DataSet(std::move(fields));
}

DataSet DataSet::generate(std::int64_t count, const std::function<Tensors(std::int64_t)>& sample,
                          CallSite site) {
  const detail::CallSiteScope at(site);
  if (count < 1) fail("is generated from at least one sample, not " + std::to_string(count));
  std::vector<Tensor> fields;
  for (std::int64_t i = 0; i < count; ++i) {
    Tensors made = call(sample, i);
    for (Tensor& field : made) {  // [...] to [1, ...], in the same memory
      if (!is_on_host(field))
        fail("is generated from samples with values on the CPU, not " + field.to_string());
      if (field.rank() == kMaxRank)
        fail<ShapeError>("has no place for the samples' axis beside those of " + field.to_string());
      Spec spec{field.dtype(), {1}};
      for (const std::int64_t size : field.shape().dims()) spec.shape.push_back(size);
      field = detail::make_concrete(spec, field.impl()->storage, field.impl()->offset);
    }
    if (i == 0)
      for (const Tensor& field : made) fields.push_back(allocate(field, count));
    check_alike(made, fields, "samples");
    for (std::size_t f = 0; f < fields.size(); ++f) copy_rows(made[f], fields[f], i);
  }
  return DataSet(std::move(fields));
}

std::pair<DataSet, DataSet> DataSet::split(double fraction, Seed seed, CallSite site) const {
  const detail::CallSiteScope at(site);
  if (!(fraction >= 0 && fraction <= 1))
    fail("splits off a fraction between 0 and 1, not " + std::to_string(fraction));
  const auto held_out =
      static_cast<std::ptrdiff_t>(std::llround(fraction * static_cast<double>(size())));
  std::vector<std::int64_t> order = detail::permutation(size(), seed.value, detail::Purpose::split);
  std::sort(order.begin(), order.begin() + held_out);
  std::sort(order.begin() + held_out, order.end());
  const std::span<const std::int64_t> all = order;
  return {of(gather(*this, all.subspan(static_cast<std::size_t>(held_out)))),
          of(gather(*this, all.first(static_cast<std::size_t>(held_out))))};
}

DataSet DataSet::subset(std::span<const std::int64_t> samples, CallSite site) const {
  const detail::CallSiteScope at(site);
  for (const std::int64_t sample : samples)
    if (sample < 0 || sample >= size())
      fail("has samples 0 to " + std::to_string(size() - 1) + ", and no " + std::to_string(sample));
  return of(gather(*this, samples));
}

DataSet DataSet::shuffled(Seed seed, CallSite site) const {
  const detail::CallSiteScope at(site);
  return of(gather(*this, detail::permutation(size(), seed.value, detail::Purpose::shuffle)));
}

DataSet DataSet::take(std::int64_t count, CallSite site) const {
  const detail::CallSiteScope at(site);
  if (count < 0) fail("takes 0 or more samples, not " + std::to_string(count));
  return of(views(*this, 0, std::min(count, size())));
}

DataSet DataSet::skip(std::int64_t count, CallSite site) const {
  const detail::CallSiteScope at(site);
  if (count < 0) fail("skips 0 or more samples, not " + std::to_string(count));
  return of(views(*this, std::min(count, size()), size()));
}

DataSet DataSet::concatenated(std::span<const DataSet> others, CallSite site) const {
  const detail::CallSiteScope at(site);
  std::int64_t count = size();
  for (const DataSet& other : others) {
    check_alike(Tensors(other.fields_.begin(), other.fields_.end()), fields_, "data sets");
    count += other.size();
  }
  std::vector<Tensor> fields;
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    fields.push_back(allocate(fields_[f], count));
    copy_rows(fields_[f], fields[f], 0);
    std::int64_t row = size();
    for (const DataSet& other : others) {
      copy_rows(other.fields_[f], fields[f], row);
      row += other.size();
    }
  }
  return DataSet(std::move(fields));
}

DataSet DataSet::mapped(const std::function<Tensors(const Tensors&)>& function,
                        const MapOptions& options, CallSite site) const {
  const detail::CallSiteScope at(site);
  if (options.batch < 1)
    fail("is mapped by batches of at least 1, not " + std::to_string(options.batch));
  std::vector<Tensor> fields;
  // An empty set is mapped once, to learn its fields.
  for (std::int64_t row = 0; row == 0 || row < size(); row += options.batch) {
    const std::int64_t rows = std::min(options.batch, size() - row);
    const Tensors made = call(function, views(*this, row, row + rows));
    for (const Tensor& field : made) {
      check_on_host(field, "what it is mapped to");
      if (field.shape()[0] != rows)
        fail<ShapeError>("is mapped to as many samples, " + std::to_string(rows) + ", not " +
                         field.to_string());
    }
    if (row == 0)
      for (const Tensor& field : made) fields.push_back(allocate(field, size()));
    check_alike(made, fields, "parts");
    for (std::size_t f = 0; f < fields.size(); ++f) copy_rows(made[f], fields[f], row);
  }
  return DataSet(std::move(fields));
}

DataSet DataSet::scaled(double factor, CallSite site) const {
  const detail::CallSiteScope at(site);
  return with_inputs(
      transformed(inputs(), [factor](double value, std::size_t) { return value * factor; }));
}

DataSet DataSet::standardized(const DataSet& reference, CallSite site) const {
  const detail::CallSiteScope at(site);
  const Spec row = sample_of(inputs());
  if (reference.size() == 0) fail("standardizes on a reference that has samples");
  if (row.shape != sample_of(reference.inputs()).shape)
    fail<ShapeError>("standardizes on a reference of the same columns, not " +
                     inputs().to_string() + " on " + reference.inputs().to_string());
  const auto columns = static_cast<std::size_t>(row.shape.elements());
  std::vector<Scale> scales(columns);
  with_values(reference.inputs(), [&](const auto* values) {
    for (std::size_t column = 0; column < columns; ++column)
      scales[column] =
          detail::fit_scale(values + column, static_cast<std::size_t>(reference.size()), columns);
  });
  return with_inputs(transformed(inputs(), [&](double value, std::size_t column) {
    return (value - scales[column].mean) / scales[column].deviation;
  }));
}

}  // namespace ebb
