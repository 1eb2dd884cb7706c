// Copies values from eager parameters, or from one session to another.
#include <functional>

#include "ebb/core/base/error.h"
#include "ebb/core/parameters/shared_parameter.h"
#include "ebb/graph/session_impl.h"

namespace ebb {

namespace {

// A variable and the source of its value: an eager tensor, or a variable of another session.
struct Source {
  std::size_t index;
  Tensor tensor;
  std::size_t variable = 0;
};

void require_equal(const std::string& name, const Spec& here, const Spec& there) {
  if (here == there) return;
  detail::refuse<ShapeError>("copy_from", "'" + name + "' is " + here.to_string() + " here, but " +
                                              there.to_string() + " in the others");
}

void require_shares_of(const std::string& name, const Communicator* here,
                       const Communicator* there) {
  if (here != there)
    detail::refuse("copy_from", "'" + name + "' is in shares of the ranks of " +
                                    (here ? there ? "another world in the others" : "a world here"
                                          : "a world in the others"));
}

}  // namespace

// Locks in the order of addresses, so that two threads copying to and fro do not deadlock.
Session::Impl::OpenBoth::OpenBoth(Pointer a, Pointer b, CallSite site)
    : first(std::less<>()(&*a, &*b) ? a : b, site) {
  if (&*a != &*b) second.emplace(std::less<>()(&*a, &*b) ? b : a, site);
}

void Session::Impl::require_values_of(const Impl& other) const {
  if (other.device.is_simulated() && !device.is_simulated())
    detail::refuse<SimulatedRead>("copy_from",
                                  "the other session's device is simulated: it has no values");
}

void Session::Impl::copy_values(const Impl* source, const Parameters& from, const Parameters& to) {
  std::vector<Source> values;
  detail::for_each_pair(to, from, [&](const Parameters::Entry& here, const Tensor& there) {
    const std::size_t index = variable_index(here.tensor, "copy_from");
    require_equal(here.name, here.tensor.impl()->spec, there.impl()->spec);
    require_shares_of(here.name, detail::shared_by(here.tensor), detail::shared_by(there));
    if (!source) {
      detail::require_whole(*there.impl()->storage, "copy_from", detail::entry());
      values.push_back({index, detail::stored(there)});
      return;
    }
    const std::size_t other_index = source->variable_index(there, "copy_from");
    source->variables.require_value(other_index, "copy_from");
    values.push_back({index, {}, other_index});
  });
  for (const Source& value : values)
    if (source)
      variables.write(value.index, source->variables, value.variable);
    else
      variables.write(value.index, value.tensor);
}

void Session::copy_from(const Parameters& from, const Parameters& to, CallSite site) {
  const Impl::OpenVariables open(impl_, site);
  detail::require_any(to, "copy_from");
  detail::require_own(from, "copy_from");
  if (!from.is_symbolic() && from.device().is_simulated() && !open->device.is_simulated())
    detail::refuse<SimulatedRead>(
        "copy_from", "the parameters are on " + from.device().name() + " and have no values");
  open->copy_values(from.is_symbolic() ? open.operator->() : nullptr, from, to);
}

void Session::copy_from(const Session& other, const Parameters& from, const Parameters& to,
                        CallSite site) {
  const detail::CallSiteScope scope(site);
  const std::shared_ptr<Impl> impl = impl_.shared(), theirs = other.impl_.shared();
  detail::require_any(to, "copy_from");
  detail::require_own(from, "copy_from");
  const Impl::OpenBoth open(impl_, other.impl_, site);
  impl->require_values_of(*theirs);
  impl->copy_values(&*theirs, from, to);
}

void Session::copy_from(const Session& other, CallSite site) {
  const detail::CallSiteScope scope(site);
  const std::shared_ptr<Impl> impl = impl_.shared(), from = other.impl_.shared();
  const Impl::OpenBoth open(impl_, other.impl_, site);
  impl->require_values_of(*from);
  const detail::SessionVariables& theirs = from->variables;
  const auto there = theirs.by_name(theirs.parameters, "copy_from");
  std::vector<Source> values;
  impl->variables.by_name(theirs.parameters, "copy_from");
  for (std::size_t i = 0; i < impl->variables.size(); ++i) {
    const VariableDeclaration& here = impl->variables.declaration(i);
    if (here.category != memory::Category::parameter) continue;
    const auto found = there.find(here.name);
    if (found == there.end())
      detail::refuse("copy_from", "the other session has no '" + here.name + "'");
    const std::size_t index = found->second;
    const VariableDeclaration& other_one = theirs.declaration(index);
    const auto shared_by = [](const VariableDeclaration& variable) {
      return variable.whole ? &variable.world->communicator() : nullptr;
    };
    require_shares_of(here.name, shared_by(here), shared_by(other_one));
    require_equal(here.name, here.spec, other_one.spec);
    theirs.require_value(index, "copy_from");
    values.push_back({i, {}, index});
  }
  for (const Source& value : values) impl->variables.write(value.index, theirs, value.variable);
}

}  // namespace ebb
