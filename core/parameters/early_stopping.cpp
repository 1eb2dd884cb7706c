#include "ebb/core/parameters/early_stopping.h"

#include <cmath>

#include "ebb/core/base/error.h"
#include "ebb/core/parameters/parameters_state.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb {

namespace {
constexpr const char* kWhat = "EarlyStopping";

template <class Function>
void for_values(const Parameters& parameters, const Function& function) {
  for (const auto* list : {&parameters.entries(), &parameters.states()})
    for (const Parameters::Entry& entry : *list)
      function(entry.name, *detail::stored(entry.tensor).impl());
}
}  // namespace

EarlyStopping::EarlyStopping(const EarlyStoppingOptions& options, CallSite site)
    : options_(options) {
  const detail::CallSiteScope at(site);
  if (options.patience < 1)
    detail::refuse(kWhat, "patience must be at least 1, not " + std::to_string(options.patience));
  if (!(options.least_change >= 0))
    detail::refuse(kWhat,
                   "least_change must be at least 0, not " + std::to_string(options.least_change));
}

bool EarlyStopping::is_better(double metric) const noexcept {
  if (!best_) return !std::isnan(metric);
  return (options_.higher_is_better ? metric - *best_ : *best_ - metric) > options_.least_change;
}

EarlyStopping::Update EarlyStopping::update(double metric) noexcept {
  const bool is_best = is_better(metric);
  if (is_best) best_ = metric;
  since_best_ = is_best ? 0 : since_best_ + 1;
  return {is_best, should_stop()};
}

void EarlyStopping::check_same(const Parameters& parameters, const char* what) const {
  std::size_t at = 0;
  for_values(parameters, [&](const std::string& name, const detail::TensorImpl& impl) {
    if (at == values_.size() || values_[at].name != name || !(values_[at].spec == impl.spec))
      detail::refuse(what, "other parameters were kept: there was no " +
                               detail::in_double_quotes(name) + " of " + impl.spec.to_string());
    ++at;
  });
  if (at < values_.size())
    detail::refuse(what, "other parameters were kept: there is no " +
                             detail::in_double_quotes(values_[at].name) + " any more");
}

EarlyStopping::Update EarlyStopping::update(double metric, const Parameters& parameters,
                                            CallSite site) {
  const detail::CallSiteScope at(site);
  if (parameters.is_symbolic())
    detail::refuse(
        kWhat,
        "a graph's values belong to its session: if (stopping.update(metric)) session.save(file)");
  detail::require_any(parameters, kWhat);
  if (!values_.empty()) check_same(parameters, kWhat);
  if (is_better(metric)) {
    std::vector<Value> values;
    std::size_t count = 0;
    for_values(parameters, [&](const std::string& name, const detail::TensorImpl& impl) {
      detail::require_whole(*impl.storage, kWhat, detail::entry());
      values.push_back({name, impl.spec});
      count += impl.spec.bytes();
    });
    // In memory of its own, so that a copy that fails half-way leaves the best as it was.
    const bool has_values = !parameters.device().is_simulated();
    HostBytes bytes(has_values ? count : 0, kWhat, "a copy of the best weights");
    std::byte* to = bytes.data();
    for_values(parameters, [&](const std::string&, const detail::TensorImpl& impl) {
      if (has_values && impl.spec.bytes() > 0)
        impl.storage->copy_out(impl.offset, to, impl.spec.bytes());
      if (has_values) to += impl.spec.bytes();
    });
    values_ = std::move(values);
    has_values_ = has_values;
    bytes_ = std::move(bytes);
  }
  return update(metric);
}

void EarlyStopping::restore(const Parameters& parameters, CallSite site) const {
  const detail::CallSiteScope at(site);
  if (parameters.is_symbolic())
    detail::refuse(kWhat, "a graph's values belong to its session: session.restore(file)");
  if (values_.empty()) detail::refuse(kWhat, "no update has kept any values");
  check_same(parameters, kWhat);
  if (parameters.device().is_simulated()) return;
  if (!has_values_)
    detail::refuse<SimulatedRead>(
        kWhat, "the best update was on a simulated device, which has no values to restore");
  const std::byte* from = bytes_.data();
  for_values(parameters, [&](const std::string&, const detail::TensorImpl& impl) {
    detail::write_state(impl, from);
    from += impl.spec.bytes();
  });
}

}  // namespace ebb
