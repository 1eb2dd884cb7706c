#include "ebb/core/data/data_set.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/data/csv.h"
#include "ebb/core/data/host_values.h"
#include "ebb/core/data/moments.h"
#include "ebb/core/data/permutation.h"

namespace ebb {

namespace {

constexpr const char* kWhat = "DataSet";

[[noreturn]] void fail(const std::string& text) {
  throw Error(detail::message(kWhat, text, detail::entry()));
}

void check_on_host(const Tensor& tensor, const char* which) {
  if (!tensor.defined() || tensor.is_symbolic() || detail::is_shape_only(*tensor.impl()) ||
      tensor.device() != Device::cpu())
    fail(std::string("takes ") + which + " with values on the CPU, not " + tensor.to_string());
  if (tensor.rank() == 0)
    throw ShapeError(detail::message(
        kWhat, std::string("takes ") + which + " with one row a sample, not " + tensor.to_string(),
        detail::entry()));
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

// A copy of `inputs`, with each value replaced by function(value, column).
template <class Function>
Tensor transformed(const Tensor& inputs, Function&& function) {
  Tensor result;
  with_values(inputs, [&]<class T>(const T* from) {
    result = detail::make_input<T>(inputs.shape(), kWhat, [&](T* to) {
      const auto columns =
          static_cast<std::size_t>(detail::with_rows(inputs.impl()->spec, 1).shape.elements());
      const auto count = static_cast<std::size_t>(inputs.elements());
      for (std::size_t i = 0; i < count; ++i)
        to[i] = static_cast<T>(function(static_cast<double>(from[i]), i % columns));
    });
  });
  return result;
}

DataSet gather(const DataSet& data, std::span<const std::int64_t> rows) {
  const auto pick = [&](const Tensor& from) {
    const Spec& spec = from.impl()->spec;
    Tensor to = detail::allocate(detail::with_rows(spec, static_cast<std::int64_t>(rows.size())),
                                 Device::cpu(), memory::Category::input,
                                 detail::tag(kWhat, detail::entry()));
    const HostView values = detail::values_of(from);
    to.impl()->storage->write(0, to.bytes(), [&](void* picked) {
      detail::gather_rows(values.data(), detail::with_rows(spec, 1).bytes(), rows, picked);
    });
    return to;
  };
  return DataSet(pick(data.inputs()), pick(data.targets()));
}

// A tensor of these values, rows of `columns` each.
template <class T>
Tensor from_values(const std::vector<T>& values, const Shape& shape) {
  return detail::make_input<T>(shape, kWhat,
                               [&](T* to) { std::copy(values.begin(), values.end(), to); });
}

}  // namespace

DataSet::DataSet(Tensor inputs, Tensor targets, CallSite site)
    : inputs_(std::move(inputs)), targets_(std::move(targets)) {
  const detail::CallSiteScope at(site);
  check_on_host(inputs_, "inputs");
  check_on_host(targets_, "targets");
  if (inputs_.shape()[0] != targets_.shape()[0])
    throw ShapeError(detail::message(kWhat,
                                     "takes as many inputs as targets, not " + inputs_.to_string() +
                                         " and " + targets_.to_string(),
                                     site));
}

DataSet DataSet::csv(const std::string& file, const DataSetCsvOptions& options, CallSite site) {
  const detail::CallSiteScope at(site);
  detail::CsvReader reader(file);
  const std::size_t label = reader.column(options.label);
  const std::size_t columns = reader.columns().size();
  if (columns == 1) throw FileError(file + ": has no column but the label");
  std::vector<float> inputs;
  std::vector<std::int32_t> targets;
  while (reader.next())
    for (std::size_t column = 0; column < columns; ++column) {
      if (column == label)
        targets.push_back(reader.integer_i32(column));
      else
        inputs.push_back(reader.number_f32(column));
    }
  if (targets.empty()) throw FileError(file + ": has no lines below its header");
  const auto count = static_cast<std::int64_t>(targets.size());
  return DataSet(from_values(inputs, {count, static_cast<std::int64_t>(columns) - 1}),
                 from_values(targets, {count}));
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
  return {gather(*this, all.subspan(static_cast<std::size_t>(held_out))),
          gather(*this, all.first(static_cast<std::size_t>(held_out)))};
}

DataSet DataSet::scaled(double factor, CallSite site) const {
  const detail::CallSiteScope at(site);
  return DataSet(
      transformed(inputs_, [factor](double value, std::size_t) { return value * factor; }),
      targets_);
}

DataSet DataSet::standardized(const DataSet& reference, CallSite site) const {
  const detail::CallSiteScope at(site);
  const Spec row = detail::with_rows(inputs_.impl()->spec, 1);
  if (reference.size() == 0) fail("standardizes on a reference that has samples");
  if (row.shape != detail::with_rows(reference.inputs_.impl()->spec, 1).shape)
    throw ShapeError(detail::message(kWhat,
                                     "standardizes on a reference of the same columns, not " +
                                         inputs_.to_string() + " on " +
                                         reference.inputs_.to_string(),
                                     site));
  const auto columns = static_cast<std::size_t>(row.shape.elements());
  std::vector<detail::Moments> moments(columns);
  with_values(reference.inputs_, [&](const auto* values) {
    for (std::size_t column = 0; column < columns; ++column)
      moments[column] =
          detail::moments(values + column, static_cast<std::size_t>(reference.size()), columns);
  });
  return DataSet(transformed(inputs_,
                             [&](double value, std::size_t column) {
                               return (value - moments[column].mean) / moments[column].deviation;
                             }),
                 targets_);
}

}  // namespace ebb
