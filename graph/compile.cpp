#include "ebb/graph/compile.h"

#include <algorithm>
#include <list>
#include <unordered_set>

#include "ebb/core/autodiff/attempt.h"
#include "ebb/core/autodiff/reverse.h"
#include "ebb/core/base/error.h"
#include "ebb/core/device/lent_stream.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/trace.h"
#include "ebb/graph/arena.h"
#include "ebb/graph/executable.h"
#include "ebb/graph/session_mutex.h"

namespace ebb::detail {

namespace {

constexpr const char* kWhat = "compile";
constexpr std::size_t kNowhere = ~std::size_t{0};

bool is_leaf(const Tensor& tensor) noexcept {
  const Node* node = tensor.impl()->node.get();
  return node && node->op == &leaf_op;
}

// The first argument that is the same leaf.
std::size_t first_of(const Tensors& arguments, std::size_t i) noexcept {
  std::size_t first = 0;
  while (arguments[first].impl()->node != arguments[i].impl()->node) ++first;
  return first;
}

// "argument 2 of 3".
std::string argument_name(std::size_t i, std::size_t count) {
  return "argument " + std::to_string(i + 1) + " of " + std::to_string(count);
}

}  // namespace

// Key by which a trace is found again.
struct CallKey {
  // Of each tensor: dtype, rank, sizes, and for a leaf the first argument that is the same one.
  std::vector<std::int64_t> shapes;
  std::vector<std::shared_ptr<const HostArgument>> others;

  CallKey(const CallArguments& arguments, bool records) : others(arguments.others) {
    shapes.push_back(records);
    for (std::size_t i = 0; i < arguments.tensors.size(); ++i) {
      const Tensor& tensor = arguments.tensors[i];
      const Spec& spec = tensor.impl()->spec;
      shapes.insert(shapes.end(), {static_cast<std::int64_t>(spec.dtype), spec.shape.rank()});
      for (const std::int64_t size : spec.shape.dims()) shapes.push_back(size);
      shapes.push_back(is_leaf(tensor) ? static_cast<std::int64_t>(first_of(arguments.tensors, i))
                                       : -1);
    }
    shapes.insert(shapes.end(), arguments.lists.begin(), arguments.lists.end());
  }
  bool operator==(const CallKey& other) const {
    return shapes == other.shapes &&
           std::ranges::equal(others, other.others,
                              [](const auto& a, const auto& b) { return a->equals(*b); });
  }
};

// A leaf whose gradient a call reads or leaves changed.
struct TracedLeaf {
  Tensor tensor = {};               // not defined(): an argument
  std::size_t argument = kNowhere;  // its number
  bool is_read = false, has_gradient = false, is_changed = false;
  std::size_t feed = kNowhere;   // of the gradient that it had
  std::size_t fetch = kNowhere;  // of the new gradient; if it is changed and this is kNowhere, it
                                 // has none after the call
  bool loses_history = false;    // eager would have given the new gradient one

  Node& node(const Tensors& arguments) const {
    return *(argument == kNowhere ? tensor : arguments[argument]).impl()->node;
  }
};

// A result: its fetch, or kNowhere for one that is not defined().
struct TracedResult {
  std::size_t fetch = kNowhere;
  bool loses_history = false;  // eager would have given it one
};

struct Traced {
  CallKey key;
  Ref<GraphState> graph;  // owns the nodes
  std::vector<TracedLeaf> leaves = {};
  std::vector<TracedResult> results = {};
  std::uint64_t draws = 0;
  Trace::Dependences dependences = {};
  std::unique_ptr<SessionVariables> variables = {};  // none: parameters are captured
  std::optional<Program> program = {};  // until it runs; none if there is nothing to compute
  std::optional<Executable> executable = {};

  bool is_for(const CallKey& wanted, const Tensors& arguments) const {
    return key == wanted &&
           std::ranges::all_of(dependences, [](const auto& state) { return state->holds(); }) &&
           std::ranges::all_of(leaves, [&](const TracedLeaf& leaf) {
             return !leaf.is_read ||
                    leaf.node(arguments).extra->tensor.defined() == leaf.has_gradient;
           });
  }
  void take_back() noexcept {
    for (const auto& state : dependences) state->take_back();
  }
};

namespace {

// One trace of the function, while it is made.
class Tracer {
 public:
  Tracer(const CallKey& key, const Tensors& arguments, const std::optional<Device>& device)
      : arguments_(arguments),
        traced_(std::make_unique<Traced>(Traced{.key = key, .graph = make_ref<GraphState>()})),
        trace_(std::make_unique<Trace>(Ref<Recorder>(traced_->graph), device)) {}
  ~Tracer() {
    if (!trace_) return;  // done
    traced_->graph->forget_draws();
    for (const auto& state : trace_->dependences()) state->take_back();
  }
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // Device of the function, once it has run: the host if nothing tells another.
  Device device() const { return trace_->known_device().value_or(Device::cpu()); }

  void run(const CompiledCalls::Function& function) {
    GraphState& graph = *traced_->graph;
    Tensors symbolic;
    for (std::size_t i = 0; i < arguments_.size(); ++i) {
      const TensorImpl& impl = *arguments_[i].impl();
      symbolic.push_back(
          graph.placeholder(argument_name(i, arguments_.size()), impl.spec, entry()));
      feed(symbolic.back(), impl.spec.shape);
      if (!is_leaf(arguments_[i])) continue;
      if (const std::size_t first = first_of(arguments_, i); first < i)
        symbolic[i] = symbolic[first];
      else
        trace_->add_leaf(symbolic.back(), impl.node->extra->tensor.defined());
    }
    draws_ = graph.placeholder("draws", {DType::i64, {kOpen, 2}}, entry());
    graph.take_draws_from(draws_);
    TapeMode mode = tape_mode();
    mode.category = memory::Category::temporary;
    mode.tracing = &graph;
    mode.trace = trace_.get();
    const TapeModeScope scope(mode);
    const GeneratorScope draws;
    const std::uint64_t first = generator().counter;
    {
      const CallSiteScope no_line({}, CallSiteScope::innermost);  // operators have their own
      results_ = function(symbolic);
    }
    traced_->draws = generator().counter - first;
    for (const auto& state : trace_->dependences()) state->end_trace();
    symbolic_ = std::move(symbolic);
    find_fetches();
    find_leaves();
    if (traced_->draws > 0) feed(draws_, {static_cast<std::int64_t>(traced_->draws), 2});
  }

  // Plans it and ends the trace.
  std::unique_ptr<Traced> finish(const Runtime& runtime, const CompileOptions& options) {
    std::vector<Node*> effects;
    for (const Ref<Node>& node : traced_->graph->nodes())
      if (!node->op->updates.empty() && node->root->op == &captured_op)
        effects.push_back(node.get());
    if (!fetches_.empty() || !effects.empty())
      traced_->program =
          make_program(*traced_->graph, fetches_, fed_, runtime,
                       {.passes = options.passes,
                        .what = kWhat,
                        .budget = memory::least_bytes({options.budget}, runtime.capacity_bytes()),
                        .batch = options.batch,
                        .effects = effects});
    traced_->graph->forget_draws();
    results_ = symbolic_ = fetches_ = Tensors();
    draws_ = Tensor();
    fed_.clear();
    require_none_left();
    traced_->dependences = std::move(trace_->dependences());
    trace_ = nullptr;
    return std::move(traced_);
  }

 private:
  void feed(const Tensor& placeholder, const Shape& shape) { fed_.push_back({placeholder, shape}); }
  std::size_t fetch(const Tensor& tensor) {
    fetches_.push_back(tensor);
    return fetches_.size() - 1;
  }

  // Whether eager would have given the result a history that leads to a leaf.
  bool has_history(const Tensor& result) {
    if (!is_floating(result.dtype()) || !result.impl()->node->has_history) return false;
    return std::ranges::any_of(nodes_below(result),
                               [&](const Node* node) { return trace_->leaf_behind(*node); });
  }

  void find_fetches() {
    for (const Tensor& result : results_) {
      if (!result.defined()) {
        traced_->results.push_back({});
        continue;
      }
      const Tensor symbolic = trace_->symbolic(result, kWhat, entry());
      if (!traced_->graph->owns(symbolic))
        refuse(kWhat, "the function returns " + result.to_string() + " of another graph");
      traced_->results.push_back({fetch(symbolic), has_history(symbolic)});
    }
  }

  void find_leaves() {
    for (Trace::Leaf& leaf : trace_->leaves()) {
      TracedLeaf traced{.is_read = leaf.is_read,
                        .has_gradient = leaf.has_gradient,
                        .is_changed = leaf.is_changed};
      if (!leaf.tensor.is_symbolic()) {
        traced.tensor = leaf.tensor;
      } else {
        const auto at = std::ranges::find_if(symbolic_, [&](const Tensor& argument) {
          return argument.impl() == leaf.tensor.impl();
        });
        if (at == symbolic_.end()) continue;  // made inside: nobody sees its gradient afterwards
        traced.argument = static_cast<std::size_t>(at - symbolic_.begin());
      }
      if (leaf.before.defined()) {
        traced.feed = fed_.size();
        feed(leaf.before, leaf.before.shape());
      }
      if (leaf.is_changed && leaf.gradient.defined()) {
        traced.fetch = fetch(leaf.gradient);
        traced.loses_history = has_history(leaf.gradient);
      }
      traced_->leaves.push_back(std::move(traced));
    }
    trace_->leaves().clear();
  }

  // Throws Error if the program still holds a tensor that the function has made.
  void require_none_left() const {
    std::unordered_map<const Node*, std::uint32_t> known;
    for (const Ref<Node>& node : traced_->graph->nodes()) {
      ++known[node.get()];
      for (const Node::Source& source : node->inputs) ++known[source.producer.get()];
    }
    if (traced_->program)
      for (const Ref<Node>& node : traced_->program->made)
        for (const Node::Source& source : node->inputs) ++known[source.producer.get()];
    for (const Ref<Node>& node : traced_->graph->nodes())
      if (node->references() > known[node.get()])
        throw Error(message(node->op->name,
                            "a tensor made by a compiled step is still held outside of it, where "
                            "it has no value: return it from the function; to change a tensor of "
                            "the program, assign() to it",
                            node->site));
  }

  const Tensors& arguments_;
  std::unique_ptr<Traced> traced_;
  std::unique_ptr<Trace> trace_;
  Tensors symbolic_, results_, fetches_;
  Tensor draws_;
  FedShapes fed_;
};

}  // namespace

bool is_traced() noexcept { return tape_mode().trace != nullptr; }

class CompiledCalls::Impl {
 public:
  Impl(const CompileOptions& options, CallSite site) : options_(options), site_(site) {
    const CallSiteScope at(site);
    if (options.max_plans < 1) refuse(kWhat, "max_plans must be at least 1");
  }

  Tensors run(const CallArguments& arguments, const Function& function) {
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

  memory::Plan plan(const CallArguments& arguments, const Function& function) {
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

  memory::Breakdown memory() const {
    const std::lock_guard lock(mutex_);
    if (!memory_) return {};
    std::vector<const Program*> programs;
    for (const std::unique_ptr<Traced>& plan : plans_)
      if (plan->executable) programs.push_back(&plan->executable->program());
    return breakdown_of(*memory_->pool, memory_->arena, programs,
                        memory_->device.runtime().profile());
  }

  memory::Stats stats() const {
    const std::lock_guard lock(mutex_);
    return memory_ ? memory_->pool->stats() : memory::Stats{};
  }

  std::size_t plans() const {
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
  };

  void check(const Tensors& arguments) const {
    for (const std::size_t i : options_.batch)
      if (i >= arguments.size() || (arguments[i].defined() && arguments[i].rank() == 0))
        refuse(kWhat,
               "CompileOptions::batch names tensor " + std::to_string(i) +
                   (i < arguments.size() ? ", a scalar"
                                         : ", and there are " + std::to_string(arguments.size())));
    if (tape_mode().collector)
      refuse(kWhat,
             "a compiled step is called by recompute(), which would make its updates twice; use "
             "recompute() inside the step");
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const auto refuse_argument = [&](const std::string& text) {
        refuse(kWhat, argument_name(i, arguments.size()) + text);
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
            " was computed from a result of a compiled step, which has no history, so "
            "that its gradient would be lost; detach() it");
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
    made.front() = tracer.finish(memory_->device.runtime(), options_);
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
    traced.executable.emplace(std::move(*traced.program), runtime, memory_->stream.get());
    traced.program.reset();
    return true;
  }

  // The draws that the lines of the function would have taken from the thread's generator.
  Tensor draws_of(const Traced& traced) const {
    const Generator& generator = detail::generator();
    std::vector<std::int64_t> values;
    for (std::uint64_t i = 0; i < traced.draws; ++i) {
      values.push_back(static_cast<std::int64_t>(generator.key));
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
        refuse(kWhat,
               "a gradient that the step reads is incomplete, since a backward pass failed "
               "half-way; call zero_grad() and repeat the passes that were to be "
               "accumulated");
      fed.push_back(extra.tensor);
    }
    if (traced.draws > 0) fed.push_back(draws_of(traced));
    InlineVector<const Tensor*, 8> feeds;
    for (const Tensor& feed : fed) {
      require_whole(*feed.impl()->storage, kWhat, entry());
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
        Attempt::note_update(node.extra->tensor.impl()->storage, tag(kWhat, node.site));
      }
    }
    Tensors fetched;
    for (std::size_t i = 0; i < program.fetches.size(); ++i) {
      const Fetch& fetch = program.fetches[i];
      const bool is_result = i < count_of_results(traced);
      fetched.push_back(allocate(
          fetch.spec, memory_->device,
          is_result ? memory::Category::temporary : memory::Category::gradient, fetch.tag));
    }
    memory_->arena.provide(program.plan);
    executable.bind(memory_->arena, *traced.variables);
    for (const TracedLeaf& leaf : traced.leaves)
      if (Node& node = leaf.node(arguments); leaf.fetch != kNowhere)
        Attempt::announce_gradient(Ref<Node>(&node));
    executable.run(memory_->stream.get(), {feeds.data(), feeds.size()}, fetched);
    for (const TracedLeaf& leaf : traced.leaves)
      if (Node& node = leaf.node(arguments); leaf.fetch != kNowhere)
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
          refuse(kWhat, argument_name(i, arguments.size()) +
                            " shares memory with a tensor that the function captures and " +
                            (is_updated ? "updates" : "differentiates") +
                            "; capture it alone, or pass a clone()");
      }
  }

  static std::size_t count_of_results(const Traced& traced) noexcept {
    return static_cast<std::size_t>(std::ranges::count_if(
        traced.results, [](const TracedResult& result) { return result.fetch != kNowhere; }));
  }

  // Completes a call that has run: sets gradients of leaves and the generator, and returns the
  // results, in a list that has room for them.
  static Tensors complete(const Traced& traced, const Tensors& arguments, const Tensors& fetched,
                          Tensors results) noexcept {
    generator().counter += traced.draws;
    const auto fetched_at = [&](std::size_t i) { return i == kNowhere ? Tensor() : fetched[i]; };
    for (const TracedLeaf& leaf : traced.leaves) {
      if (!leaf.is_changed) continue;
      Node::Extra& extra = *leaf.node(arguments).extra;
      extra.tensor = fetched_at(leaf.fetch);
      if (leaf.loses_history) extra.tensor.impl()->lost_history = true;
      extra.partial = false;
    }
    for (const TracedResult& result : traced.results) {
      results.push_back(fetched_at(result.fetch));
      if (result.loses_history) results[results.size() - 1].impl()->lost_history = true;
    }
    return results;
  }

  const CompileOptions options_;
  const CallSite site_;
  mutable SessionMutex mutex_{"compile", "this compiled step"};  // guards the members below
  std::unique_ptr<Memory> memory_;
  Plans plans_;  // most recently used first
};

CompiledCalls::CompiledCalls(const CompileOptions& options, CallSite site)
    : impl_(std::make_shared<Impl>(options, site)) {}

// Each call holds the step: a function called when memory is short may drop the caller's handle.
std::shared_ptr<CompiledCalls::Impl> CompiledCalls::impl() const {
  if (!impl_) refuse(kWhat, "this compiled step has been moved to another");
  return impl_;
}

Tensors CompiledCalls::run(const CallArguments& arguments, const Function& function) const {
  return impl()->run(arguments, function);
}
memory::Plan CompiledCalls::plan(const CallArguments& arguments, const Function& function) const {
  return impl()->plan(arguments, function);
}
memory::Breakdown CompiledCalls::memory() const { return impl()->memory(); }
memory::Stats CompiledCalls::stats() const { return impl()->stats(); }
std::size_t CompiledCalls::plans() const { return impl()->plans(); }

}  // namespace ebb::detail
