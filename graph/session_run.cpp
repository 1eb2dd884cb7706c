#include <algorithm>

#include "ebb/core/base/error.h"
#include "ebb/core/base/log.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/trace.h"
#include "ebb/graph/session_impl.h"

namespace ebb {

using memory::Category;

namespace detail {

// Throws unless the feed has a value; called before its shape is read.
void require_value(const Tensor& placeholder, const Tensor& value) {
  if (!value.defined() || !value.impl()->storage)
    refuse("run", described(*placeholder.impl()->node) + " is fed with " + value.to_string() +
                      "; it takes a concrete tensor");
}

void check_feed(const Node& placeholder, const Tensor& value, const Device& device) {
  const Spec& declared = placeholder.outputs[0];
  if (value.dtype() != declared.dtype)
    refuse<ShapeError>("run", described(placeholder) + " is " + declared.to_string() +
                                  " and cannot be fed with " + value.to_string());
  const Device& where = value.impl()->storage->device();
  const bool copies = device.runtime().profile().captures_programs && where == Device::cpu();
  if (!(where == device) && !device.is_simulated() && !copies)
    refuse("run", described(placeholder) + " is fed with a tensor on " + where.name() +
                      ", and the session runs on " + device.name());
  require_whole(*value.impl()->storage, "run", entry());
}

}  // namespace detail

namespace {
// Checks the options before the session takes a key of the thread's generator.
const SessionOptions& checked(const SessionOptions& options) {
  if (options.max_plans < 1) detail::refuse("Session", "max_plans must be at least 1");
  return options;
}

// All memory left on the device, except a part for libraries and for fetches, which come from the
// device's shared memory. A session that took everything could not even return a loss.
std::size_t most_ahead(const memory::CachingAllocator& allocator) {
  constexpr std::size_t kMostForFetches = std::size_t{256} << 20;
  const memory::Profile& profile = allocator.profile();
  const std::size_t room = allocator.room_bytes();
  const std::size_t fetches = std::min(room / 16, kMostForFetches);
  const std::size_t left = profile.in_pages(std::max(fetches, profile.left_free(room)));
  return profile.whole_pages(room - std::min(room, left));
}

// Makes the pool and reserves ahead, before the session takes a key of the thread's generator.
std::unique_ptr<memory::Pool> make_pool(const SessionOptions& options, std::size_t& preallocated) {
  memory::CachingAllocator& allocator = options.device.runtime().allocator();
  const std::optional<std::size_t> limit = memory::least_bytes(
      {options.memory_limit, options.budget}, options.device.runtime().capacity_bytes());
  auto pool = allocator.make_pool("session", limit);
  if (options.growth == memory::Growth::preallocate) {
    const std::size_t bytes =
        limit ? allocator.profile().whole_pages(*limit) : most_ahead(allocator);
    pool->preallocate(bytes);
    preallocated = bytes;
  }
  return pool;
}
}  // namespace

Session::Impl::Impl(const Graph& graph, const SessionOptions& options)
    : graph(graph),
      options(checked(options)),
      device(options.device),
      budget(options.budget
                 ? std::optional(options.budget->bytes_of(device.runtime().capacity_bytes()))
                 : std::nullopt),
      stream(device.runtime()),
      pool(make_pool(options, preallocated)),
      variables(graph.state(), device.runtime(), stream.get(), *pool,
                detail::session_key(options.seed)),
      arena(*pool, device.runtime(), "session arena") {}

void Session::Impl::require_open() const {
  if (closed) detail::refuse<SessionClosed>("Session", "this session is closed");
  if (suspended) detail::refuse("Session", "this session is suspended; call resume() first");
}

Session::Impl::Feeding::Feeding(const GraphState& graph, std::span<const Tensor* const> given) {
  for (std::size_t i = 0; i < given.size(); ++i) {
    detail::require_placeholder("run", graph, *given[i], i, given.size());
    sources.push_back(i);
  }
  const auto number = [&](std::size_t i) { return given[i]->impl()->node->number; };
  const auto before = [&](std::size_t a, std::size_t b) { return number(a) < number(b); };
  if (!std::ranges::is_sorted(sources, before)) std::ranges::stable_sort(sources, before);
  for (const std::size_t source : sources) placeholders.push_back(*given[source]);
}

// Slots made since a plan, for other fetches, have left it less room.
bool Session::Impl::keeps_to_budget(const CachedProgram& plan) const {
  if (!budget) return true;
  const detail::Program& program = plan.executable.program();
  return device.runtime().profile().in_pages(program.plan.arena_bytes) +
             variables.reserved_bytes_with(program.variables, program.slots_on_host) <=
         *budget;
}

std::shared_ptr<Session::Impl::CachedProgram> Session::Impl::find_or_make_plan(
    const Tensors& fetches, const Feeding& feeding, std::vector<Shape> shapes) {
  PlanKey key;
  if (detail::looks_for_nan()) key.push_back(std::numeric_limits<std::int64_t>::min());
  for (const Tensor& fetch : fetches) {
    if (!graph.state().owns(fetch))
      detail::refuse("run", "a fetch is not a tensor of this graph: " + fetch.to_string());
    const Node::Source source = detail::source_of(fetch);
    key.insert(key.end(),
               {static_cast<std::int64_t>(source.producer->number), source.output, source.version});
  }
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    key.push_back(-1 - static_cast<std::int64_t>(feeding.placeholders[i].impl()->node->number));
    const auto dims = shapes[i].dims();
    key.insert(key.end(), dims.begin(), dims.end());
  }
  if (const auto found = plan_of_.find(key); found != plan_of_.end()) {
    if (keeps_to_budget(**found->second)) {
      plans.splice(plans.begin(), plans, found->second);
      return plans.front();
    }
    plans.erase(found->second);
    plan_of_.erase(found);
  }
  FedShapes fed;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    fed.push_back({feeding.placeholders[i], shapes[i]});
  detail::Program program =
      detail::make_program(graph.state(), fetches, fed, device.runtime(),
                           {.passes = options.passes, .budget = budget, .variables = &variables});
  const auto made = std::make_shared<CachedProgram>(CachedProgram{
      std::move(key), std::move(shapes),
      detail::Executable(std::move(program), device.runtime(), stream.get(), prepared)});
  made->looks_for_nan = detail::looks_for_nan();
  if (detail::logs_debug()) {
    const memory::Plan& plan = made->executable.program().plan;
    detail::log_debug("session: a plan of " + std::to_string(plan.nodes) + " nodes, peak " +
                      memory::format_bytes(plan.peak_bytes) + " (at least " +
                      memory::format_bytes(plan.lower_bound_bytes) + "), most alive at " +
                      plan.peak_node);
  }
  return made;
}

Session::Impl::Plans Session::Impl::enter(const std::shared_ptr<CachedProgram>& plan) {
  Plans entered = {plan};
  plan_of_.emplace(plan->key, entered.begin());
  return entered;
}

void Session::Impl::keep(Plans entered) noexcept {
  entered.front()->kept = true;
  plans.splice(plans.begin(), entered);
  if (plans.size() > options.max_plans) {
    plan_of_.erase(plans.back()->key);
    plans.pop_back();
  }
}

Tensors Session::Impl::execute(const std::shared_ptr<CachedProgram>& plan,
                               std::span<const Tensor*> feeds) {
  detail::Executable& executable = plan->executable;
  const detail::Program& program = executable.program();
  for (std::size_t i = 0; i < feeds.size(); ++i)
    detail::check_feed(*program.feeds[i], *feeds[i], device);
  const Tensors copies = executable.copy_updated(feeds);
  detail::SessionVariables::Added added;
  const detail::Arena::Use use(arena);
  Tensors results;
  Plans entered;
  try {
    if (program.slots_on_host && !variables.slots_on_host()) keep_slots_on_host();
    if (!plan->has_variables) added = variables.allocate(program.variables);
    executable.check(variables);
    if (std::exchange(plan->moves, moves) != moves) executable.unbind();
    // The arena comes last: it must not grow for a run that fails.
    for (const detail::Fetch& fetch : program.fetches)
      results.push_back(detail::allocate(fetch.spec, device, Category::temporary, fetch.tag));
    if (!plan->kept) entered = enter(plan);
    arena.provide(program.plan);
  } catch (...) {
    if (!entered.empty()) plan_of_.erase(plan->key);
    variables.release(added);
    throw;
  }
  executable.bind(arena, variables);
  if (!entered.empty()) keep(std::move(entered));
  plan->has_variables = true;
  executable.run(arena, stream.get(), feeds, results);
  return results;
}

Tensors Session::Impl::run(const Tensors& fetches, const Feeds& feeds) {
  const Lock lock(*this);
  require_open();
  InlineVector<const Tensor*, 8> placeholders, values;
  for (const Feed& feed : feeds) {
    placeholders.push_back(&feed.placeholder);
    values.push_back(&feed.value);
  }
  const GraphState::Reading reading(graph.state());
  const Feeding feeding(graph.state(), {placeholders.data(), placeholders.size()});
  std::shared_ptr<CachedProgram> plan;
  return run_planned(fetches, feeding, {values.data(), values.size()}, plan);
}

Tensors Session::Impl::run_prepared(const Tensors& fetches, const Feeding& feeding,
                                    std::span<const Tensor* const> given,
                                    std::shared_ptr<CachedProgram>& plan) {
  const Lock lock(*this);
  require_open();
  if (given.size() != feeding.sources.size())
    detail::refuse("prepare", "this step takes " + std::to_string(feeding.sources.size()) +
                                  " values and was given " + std::to_string(given.size()));
  const GraphState::Reading reading(graph.state());
  return run_planned(fetches, feeding, given, plan);
}

Tensors Session::Impl::run_planned(const Tensors& fetches, const Feeding& feeding,
                                   std::span<const Tensor* const> given,
                                   std::shared_ptr<CachedProgram>& plan) {
  detail::refuse_while_tracing("run", detail::entry());
  InlineVector<const Tensor*, 8> values;
  bool same = plan != nullptr && plan->graph_size == graph.state().nodes().size() &&
              keeps_to_budget(*plan) && plan->looks_for_nan == detail::looks_for_nan();
  for (std::size_t i = 0; i < given.size(); ++i) {
    const Tensor& value = *given[feeding.sources[i]];
    detail::require_value(feeding.placeholders[i], value);
    same = same && value.shape() == plan->shapes[i];
    values.push_back(&value);
  }
  std::shared_ptr<CachedProgram> found;
  if (!same) {
    std::vector<Shape> shapes;
    for (const Tensor* value : values) shapes.push_back(value->shape());
    found = find_or_make_plan(fetches, feeding, std::move(shapes));
  }
  const std::shared_ptr<CachedProgram>& used = same ? plan : found;
  try {
    Tensors results = execute(used, {values.data(), values.size()});
    if (same) return results;
    found->graph_size = graph.state().nodes().size();
    plan = std::move(found);
    return results;
  } catch (const OutOfMemory& error) {
    rethrow_with_hint(error, fetches, feeding, used->shapes);
  }
}

memory::Breakdown Session::Impl::memory() {
  const Look look(*this);
  std::vector<const detail::Program*> programs;
  for (const std::shared_ptr<CachedProgram>& plan : plans)
    programs.push_back(&plan->executable.program());
  memory::Breakdown breakdown =
      detail::breakdown_of(*pool, arena, programs, device.runtime().profile());
  if (!suspended) {
    breakdown.parameter_bytes = variables.parameter_bytes();
    breakdown.optimizer_state_bytes = variables.slot_bytes();
  }
  breakdown.page_locked_bytes += variables.host_bytes();
  return breakdown;
}

void Session::Impl::end() noexcept {
  if (!mutex.is_mine() && !memory::is_in_watch_call()) {
    close();
    return;
  }
  closed = true;
  left_.exchange(1);
  close_if_left();
}

// end() and a thread that unlocks at the same time both change `left_` atomically. The later of the
// two sees everything that the other did before, so one of them gets the lock.
void Session::Impl::close_if_left() noexcept {
  if (left_.fetch_add(0) == 0 || !mutex.try_lock()) return;
  close_now();
  mutex.unlock();
}

memory::CloseReport Session::Impl::close() {
  const Lock lock(*this);
  return close_now();
}

memory::CloseReport Session::Impl::close_now() noexcept {
  closed = true;
  plans.clear();
  prepared = {};
  plan_of_.clear();
  variables.forget();
  arena.forget();
  suspended.reset();
  is_suspended = false;
  const memory::CloseReport report = pool->close();
  if (report.returned_bytes && detail::logs_debug())
    detail::log_debug("session: closed, " + memory::format_bytes(report.returned_bytes) +
                      " went back to the device");
  return report;
}

}  // namespace ebb
