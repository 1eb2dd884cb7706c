#include <algorithm>

#include "ebb/core/error.h"
#include "ebb/core/log.h"
#include "ebb/core/random.h"
#include "ebb/graph/session_impl.h"

namespace ebb {

using detail::message;
using memory::Category;

namespace detail {

void* check_feed(const Node& placeholder, const Tensor& value, const Device& device) {
  const std::string name = "placeholder '" + placeholder.extra->name + "'";
  if (!value.defined() || !value.impl()->storage)
    throw Error("[run] " + name + " is fed with " + value.to_string() +
                "; it takes a concrete tensor");
  const Spec& declared = placeholder.outputs[0].spec;
  if (value.dtype() != declared.dtype)
    throw ShapeError(message(
        "run",
        name + " is " + declared.to_string() + " and cannot be fed with " + value.to_string(),
        placeholder.site));
  const Device& where = value.impl()->storage->device();
  if (!(where == device) && !device.is_simulated())
    throw Error("[run] " + name + " is fed with a tensor on " + where.name() +
                ", and the session runs on " + device.name());
  return data(value);
}

}  // namespace detail

Session::Impl::Impl(const Graph& graph, const SessionOptions& options)
    : graph(graph),
      options(options),
      device(options.device),
      pool(device.runtime().allocator().make_pool("session", options.memory_limit)),
      variables(graph.state(), device.runtime(), *pool, detail::session_key(options.seed)) {
  if (options.max_plans < 1) throw Error("[Session] max_plans must be at least 1");
}

void Session::Impl::require_open() const {
  if (closed) throw SessionClosed("[Session] this session is closed");
}

std::shared_ptr<Session::Impl::Entry> Session::Impl::find_or_make_plan(const Tensors& fetches,
                                                                       FedShapes shapes) {
  const auto is_wanted = [&](const std::shared_ptr<Entry>& entry) {
    if (entry->fetches.size() != fetches.size() || entry->shapes.size() != shapes.size())
      return false;
    for (std::size_t i = 0; i < fetches.size(); ++i)
      if (!fetches[i].defined() || entry->fetches[i].first != fetches[i].impl()->node.get() ||
          entry->fetches[i].second != fetches[i].impl()->output)
        return false;
    for (std::size_t i = 0; i < shapes.size(); ++i)
      if (entry->shapes[i].placeholder.impl()->node != shapes[i].placeholder.impl()->node ||
          !(entry->shapes[i].shape == shapes[i].shape))
        return false;
    return true;
  };
  const auto found = std::find_if(plans.begin(), plans.end(), is_wanted);
  if (found != plans.end()) {
    plans.splice(plans.begin(), plans, found);
    return plans.front();
  }
  detail::Program program = detail::make_program(graph.state(), fetches, shapes, device.runtime(),
                                                 {.passes = options.passes});
  std::vector<std::pair<const Node*, std::uint32_t>> keys;
  for (const Tensor& fetch : fetches)
    keys.emplace_back(fetch.impl()->node.get(), fetch.impl()->output);
  plans.push_front(std::make_shared<Entry>(
      Entry{std::move(keys), std::move(shapes), detail::Executable(std::move(program))}));
  if (plans.size() > options.max_plans) plans.pop_back();
  if (detail::logs_debug()) {
    const memory::Plan& plan = plans.front()->executable.program().plan;
    detail::log_debug("session: a plan of " + std::to_string(plan.nodes) + " nodes, peak " +
                      memory::format_bytes(plan.peak_bytes) + " (at least " +
                      memory::format_bytes(plan.lower_bound_bytes) + "), most alive at " +
                      plan.peak_node);
  }
  return plans.front();
}

void Session::Impl::provide_arena(const memory::Plan& plan) {
  if (plan.arena_bytes == 0 || (arena_ && arena_->requested_bytes() >= plan.arena_bytes)) return;
  pool->free(std::exchange(arena_, nullptr));
  arena_ = pool->allocate({plan.arena_bytes, Category::activation, {"session arena"}},
                          plan.arena_by_category);
  if (detail::logs_debug())
    detail::log_debug("session: an arena of " + memory::format_bytes(plan.arena_bytes));
}

// Everything is allocated and checked before the first kernel.
Tensors Session::Impl::execute(Entry& entry, std::span<void* const> feeds) {
  detail::Executable& executable = entry.executable;
  variables.allocate();
  provide_arena(executable.program().plan);
  executable.bind(arena_ ? static_cast<std::byte*>(arena_->data()) : nullptr, variables, device);
  Tensors results;
  InlineVector<void*, 4> addresses;
  for (const detail::Fetch& fetch : executable.program().fetches) {
    results.push_back(detail::allocate(fetch.spec, device, Category::temporary, {"fetch"}));
    addresses.push_back(detail::data(results.back()));
  }
  graph.state().begin_run();
  executable.run(feeds, {addresses.data(), addresses.size()});
  graph.state().end_run();
  variables.count_run();
  return results;
}

Tensors Session::Impl::run(const Tensors& fetches, const Feeds& feeds) {
  const std::lock_guard lock(mutex);
  require_open();
  FedShapes shapes;
  for (const Feed& feed : feeds) {
    if (!feed.value.defined()) throw Error("[run] a feed's value is a tensor that holds nothing");
    shapes.push_back({feed.placeholder, feed.value.shape()});
  }
  const std::shared_ptr<Entry> entry = find_or_make_plan(fetches, std::move(shapes));
  InlineVector<void*, 8> addresses;
  for (std::size_t i = 0; i < feeds.size(); ++i)
    addresses.push_back(
        detail::check_feed(*entry->executable.program().feeds[i], feeds[i].value, device));
  return execute(*entry, {addresses.data(), addresses.size()});
}

Tensor Session::Impl::run_prepared(const Tensors& fetch, const Tensors& placeholders,
                                   std::span<const Tensor* const> values,
                                   std::shared_ptr<Entry>& entry) {
  const std::lock_guard lock(mutex);
  require_open();
  if (values.size() != placeholders.size())
    throw Error("[prepare] this step takes " + std::to_string(placeholders.size()) +
                " values and was given " + std::to_string(values.size()));
  bool same = entry != nullptr;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!values[i]->defined()) throw Error("[run] a feed's value is a tensor that holds nothing");
    same = same && values[i]->shape() == entry->shapes[i].shape;
  }
  if (!same) {
    FedShapes shapes;
    for (std::size_t i = 0; i < values.size(); ++i)
      shapes.push_back({placeholders[i], values[i]->shape()});
    entry = find_or_make_plan(fetch, std::move(shapes));
  }
  InlineVector<void*, 8> addresses;
  for (std::size_t i = 0; i < values.size(); ++i)
    addresses.push_back(
        detail::check_feed(*entry->executable.program().feeds[i], *values[i], device));
  return std::move(execute(*entry, {addresses.data(), addresses.size()})[0]);
}

memory::Breakdown Session::Impl::memory() const {
  const std::lock_guard lock(mutex);
  const memory::Stats stats = pool->stats();
  memory::Breakdown breakdown;
  breakdown.parameter_bytes = variables.parameter_bytes();
  breakdown.optimizer_state_bytes = variables.slot_bytes();
  breakdown.arena_bytes = arena_ ? arena_->allocated_bytes() : 0;
  for (const std::shared_ptr<Entry>& entry : plans)
    breakdown.workspace_bytes =
        std::max(breakdown.workspace_bytes, entry->executable.program().plan.workspace_bytes);
  breakdown.total_bytes = stats.allocated.current;
  breakdown.reserved_bytes = stats.reserved.current;
  return breakdown;
}

memory::CloseReport Session::Impl::close() {
  const std::lock_guard lock(mutex);
  closed = true;
  plans.clear();
  variables.forget();
  arena_ = nullptr;
  const memory::CloseReport report = pool->close();
  if (report.returned_bytes && detail::logs_debug())
    detail::log_debug("session: closed, " + memory::format_bytes(report.returned_bytes) +
                      " went back to the device");
  return report;
}

}  // namespace ebb
