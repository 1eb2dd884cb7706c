#include "ebb/graph/compile.h"

#include <algorithm>
#include <list>

#include "ebb/core/autodiff/attempt.h"
#include "ebb/core/base/error.h"
#include "ebb/core/device/lent_stream.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/graph/arena.h"
#include "ebb/graph/compile_trace.h"
#include "ebb/graph/executable.h"
#include "ebb/graph/session_mutex.h"

namespace ebb::detail {

namespace {

class Calls final : public CompiledCalls {
 public:
  Calls(const CompileOptions& options, CallSite site) : options_(options), site_(site) {
    const CallSiteScope at(site);
    if (options.max_plans < 1) refuse(kCompile, "max_plans must be at least 1");
  }

  Tensors run(CallArguments arguments, const Function& function) override {
    const CallSiteScope at(site_);
    const std::lock_guard lock(mutex_);
    check(arguments.tensors);
    const CallKey key(arguments, tape_mode().records);
    if (const auto found = find(key, arguments.tensors); found != plans_.end()) {
      plans_.splice(plans_.begin(), plans_, found);
      return execute(*plans_.front(), arguments.tensors);
    }
    Plans made = trace(key, arguments.tensors, function);
    try {
      Tensors results = execute(*made.front(), arguments.tensors);
      keep(made);
      return results;
    } catch (...) {
      made.front()->take_back();
      throw;
    }
  }

  memory::Plan plan(CallArguments arguments, const Function& function) override {
    const CallSiteScope at(site_);
    const std::lock_guard lock(mutex_);
    check(arguments.tensors);
    const CallKey key(arguments, tape_mode().records);
    if (const auto found = find(key, arguments.tensors); found != plans_.end())
      return plan_of(**found);
    Plans made = trace(key, arguments.tensors, function);
    Traced& traced = *made.front();
    const memory::Plan plan = plan_of(traced);
    traced.take_back();
    // Slots that it would have made are gone, and so is what refers to them.
    if (traced.is_for(key, arguments.tensors)) keep(made);
    return plan;
  }

  memory::Breakdown memory() const override {
    const std::lock_guard lock(mutex_);
    if (!memory_) return {};
    std::vector<const Program*> programs;
    for (const std::unique_ptr<Traced>& plan : plans_)
      if (plan->executable) programs.push_back(&plan->executable->program());
    return breakdown_of(*memory_->pool, memory_->arena, programs,
                        memory_->device.runtime().profile());
  }

  memory::Stats stats() const override {
    const std::lock_guard lock(mutex_);
    return memory_ ? memory_->pool->stats() : memory::Stats{};
  }

  std::size_t plans() const override {
    const std::lock_guard lock(mutex_);
    return plans_.size();
  }

 private:
  using Plans = std::list<std::unique_ptr<Traced>>;

  // Stream, pool and arena of all plans, on the device of the first call.
  struct Memory {
    explicit Memory(const Device& on, const CompileOptions& options)
        : device(on),
          stream(device.runtime()),
          pool(device.runtime().allocator().make_pool(
              "compiled", memory::least_bytes({options.memory_limit, options.budget},
                                              device.runtime().capacity_bytes()))),
          arena(*pool, device.runtime(), "arena of a compiled step") {}

    const Device device;
    const LentStream stream;
    const std::unique_ptr<memory::Pool> pool;
    Arena arena;
    PreparedCache prepared;  // for all plans
  };

  void check(const Tensors& arguments) const {
    for (const std::size_t i : options_.batch)
      if (i >= arguments.size() || (arguments[i].defined() && arguments[i].rank() == 0))
        refuse(kCompile,
               "CompileOptions::batch names tensor " + std::to_string(i) +
                   (i < arguments.size() ? ", a scalar"
                                         : ", and there are " + std::to_string(arguments.size())));
    if (tape_mode().collector)
      refuse(kCompile,
             "a compiled step is called by recompute(), which would make its updates twice; use "
             "recompute() inside the step");
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto refuse_argument = [&](const std::string& text) {
        refuse(kCompile, argument_name(i, arguments.size()) + text);
      };
      const Tensor& argument = arguments[i];
      if (!argument.defined()) refuse_argument(" holds nothing");
      const TensorImpl& impl = *argument.impl();
      if (!impl.storage) refuse_argument(" has no values: it is " + argument.to_string());
      const Device& here = impl.storage->device();
      const Device& there = memory_ ? memory_->device : arguments[0].impl()->storage->device();
      if (!(here == there))
        refuse_argument(" is " + argument.to_string() + ", but this step runs on " + there.name());
      if (tape_mode().records && impl.lost_history)
        refuse_argument(
            " was computed from a result of a compiled step, which has no history, so that its "
            "gradient would be lost; detach() it");
      if (tape_mode().records && impl.node && !is_leaf(argument))
        refuse_argument(" is " + argument.to_string() +
                        " with a history, to which no gradient would flow; detach() it, or compute "
                        "it inside the step");
    }
  }

  Plans::iterator find(const CallKey& key, const Tensors& arguments) {
    return std::ranges::find_if(plans_,
                                [&](const auto& plan) { return plan->is_for(key, arguments); });
  }

  // The one plan that a list has joins the kept ones, which may then be one too many.
  void keep(Plans& made) noexcept {
    plans_.splice(plans_.begin(), made);
    if (plans_.size() > options_.max_plans) plans_.pop_back();
  }

  // Traces the function for these arguments. Returns a list of one.
  Plans trace(const CallKey& key, const Tensors& arguments, const Function& function) {
    std::optional<Device> device;
    if (memory_)
      device = memory_->device;
    else if (!arguments.empty())
      device = arguments[0].impl()->storage->device();
    Tracer tracer(key, arguments, device);
    tracer.run(function);
    if (!memory_) memory_ = std::make_unique<Memory>(tracer.device(), options_);
    Plans made(1);
    made.front() = tracer.finish(options_);
    return made;
  }

  static memory::Plan plan_of(const Traced& traced) {
    if (traced.executable) return traced.executable->program().plan;
    return traced.program ? traced.program->plan : memory::Plan{};
  }

  // Prepares the program's first run. False if there is no program.
  bool make_executable(Traced& traced) {
    if (traced.executable) return true;
    if (!traced.program) return false;
    Runtime& runtime = memory_->device.runtime();
    traced.variables = std::make_unique<SessionVariables>(*traced.graph, runtime,
                                                          memory_->stream.get(), *memory_->pool, 0);
    traced.executable.emplace(std::move(*traced.program), runtime, memory_->stream.get(),
                              memory_->prepared);
    traced.program.reset();
    return true;
  }

  // The draws that the lines of the function would have taken from the thread's generator.
  Tensor draws_of(const Traced& traced) const {
    const Generator& generator = detail::generator();
    std::vector<std::int64_t> values;
    for (std::uint64_t i = 0; i < traced.draws; ++i) {
      values.push_back(static_cast<std::int64_t>(by_rank(generator.key)));
      values.push_back(static_cast<std::int64_t>(generator.counter + i));
    }
    return Tensor::from(values, {static_cast<std::int64_t>(traced.draws), 2}, memory_->device);
  }

  Tensors execute(Traced& traced, const Tensors& arguments) {
    Tensors results;
    results.reserve(traced.results.size());
    if (!make_executable(traced)) return complete(traced, arguments, {}, std::move(results));
    Executable& executable = *traced.executable;
    const Program& program = executable.program();

    require_apart(program, arguments);
    Tensors fed = arguments;
    for (const TracedLeaf& leaf : traced.leaves) {
      if (leaf.feed == kNowhere) continue;
      const Node::Extra& extra = *leaf.node(arguments).extra;
      if (extra.partial)
        refuse(kCompile,
               "a gradient that the step reads is incomplete, since a backward pass failed "
               "half-way; call zero_grad() and repeat the passes that were to be accumulated");
      fed.push_back(extra.tensor);
    }
    if (traced.draws > 0) fed.push_back(draws_of(traced));
    InlineVector<const Tensor*, 8> feeds;
    for (const Tensor& feed : fed) {
      require_whole(*feed.impl()->storage, kCompile, entry());
      feeds.push_back(&feed);
    }
    const Tensors copies = executable.copy_updated({feeds.data(), feeds.size()});

    const Arena::Use use(memory_->arena);
    executable.check(*traced.variables);
    // An unwanted value may be found after updates: they are taken back then.
    std::optional<Attempt> attempt;
    if (tape_mode().nan_check != NanCheck::none) {
      attempt.emplace();
      for (const std::uint32_t index : program.updated_captured) {
        const Node& node = *program.captured[index];
        Attempt::note_update(node.extra->tensor.impl()->storage, tag(kCompile, node.site));
      }
    }
    // Results come first, then gradients.
    auto results_left = std::ranges::count_if(
        traced.results, [](const TracedResult& result) { return result.fetch != kNowhere; });
    Tensors fetched;
    for (const Fetch& fetch : program.fetches)
      fetched.push_back(
          allocate(fetch.spec, memory_->device,
                   results_left-- > 0 ? memory::Category::temporary : memory::Category::gradient,
                   fetch.tag));
    memory_->arena.provide(program.plan);
    executable.bind(memory_->arena, *traced.variables);
    for (const TracedLeaf& leaf : traced.leaves)
      if (Node& node = leaf.node(arguments); leaf.gradient.fetch != kNowhere)
        Attempt::announce_gradient(Ref<Node>(&node));
    executable.run(memory_->arena, memory_->stream.get(), {feeds.data(), feeds.size()}, fetched);
    for (const TracedLeaf& leaf : traced.leaves)
      if (Node& node = leaf.node(arguments); leaf.gradient.fetch != kNowhere)
        Attempt::note_gradient(Ref<Node>(&node), !node.extra->tensor.defined());
    results = complete(traced, arguments, fetched, std::move(results));
    if (!program.updated_captured.empty()) Attempt::keep();
    return results;
  }

  // Eager lines would see through an argument what they do to the tensor that they have captured.
  static void require_apart(const Program& program, const Tensors& arguments) {
    for (std::size_t i = 0; i < arguments.size(); ++i)
      for (std::uint32_t c = 0; c < program.captured.size(); ++c) {
        const Tensor& captured = program.captured[c]->extra->tensor;
        const Storage* const storage = captured.impl()->storage.get();
        if (storage != arguments[i].impl()->storage.get()) continue;
        const bool is_updated = std::ranges::binary_search(program.updated_captured, c);
        if (is_updated || (is_leaf(captured) && is_leaf(arguments[i]) && tape_mode().records))
          refuse(kCompile, argument_name(i, arguments.size()) +
                               " shares memory with a tensor that the function captures and " +
                               (is_updated ? "updates" : "differentiates") +
                               "; capture it alone, or pass a clone()");
      }
  }

  // Completes a call that has run: sets gradients of leaves and the generator, and returns the
  // results, in a list that has room for them.
  static Tensors complete(const Traced& traced, const Tensors& arguments, const Tensors& fetched,
                          Tensors results) noexcept {
    generator().counter += traced.draws;
    const auto value_of = [&](const TracedResult& result) {
      Tensor value = result.fetch == kNowhere ? Tensor() : fetched[result.fetch];
      if (result.loses_history) value.impl()->lost_history = true;
      return value;
    };
    for (const TracedLeaf& leaf : traced.leaves) {
      if (!leaf.is_changed) continue;
      Node::Extra& extra = *leaf.node(arguments).extra;
      extra.tensor = value_of(leaf.gradient);
      extra.partial = false;
    }
    for (const TracedResult& result : traced.results) results.push_back(value_of(result));
    return results;
  }

  const CompileOptions options_;
  const CallSite site_;
  mutable SessionMutex mutex_{"compile", "this compiled step"};  // guards the members below
  std::unique_ptr<Memory> memory_;
  Plans plans_;  // most recently used first
};

}  // namespace

std::shared_ptr<CompiledCalls> CompiledCalls::make(const CompileOptions& options, CallSite site) {
  return std::make_shared<Calls>(options, site);
}

std::shared_ptr<CompiledCalls> held(const std::shared_ptr<CompiledCalls>& calls) {
  if (!calls) refuse(kCompile, "this compiled step has been moved to another");
  return calls;
}

}  // namespace ebb::detail
