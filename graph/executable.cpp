#include "ebb/graph/executable.h"

#include <cstring>
#include <optional>
#include <set>
#include <string_view>

#include "ebb/core/autodiff/attempt.h"
#include "ebb/core/base/error.h"
#include "ebb/core/base/log.h"
#include "ebb/core/base/no_copy.h"
#include "ebb/core/kernels/carver.h"
#include "ebb/core/kernels/collective.h"
#include "ebb/core/tensor/detect_nan.h"
#include "ebb/core/tensor/index_check.h"
#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::detail {

namespace {
Storage& captured_storage(const Node& node) noexcept { return *node.extra->tensor.impl()->storage; }
}  // namespace

Executable::Executable(Program program, Runtime& runtime, Stream* stream,
                       detail::PreparedCache& cache)
    : program_(std::move(program)), runtime_(runtime) {
  buffers_.reserve(program_.values.size());
  for (std::uint32_t i = 0; i < program_.values.size(); ++i) {
    const LocatedValue& value = program_.values[i];
    buffers_.push_back({nullptr, value.spec});
    if (value.location.kind == Location::feed)
      feed_patches_.push_back({i, value.location.index, value.location.offset});
    if (value.location.kind == Location::fetch)
      fetch_patches_.push_back({i, value.location.index, value.location.offset});
  }
  launches_.reserve(program_.steps.size());
  for (const Step& step : program_.steps) {
    const Buffer* values = buffers_.data() + step.first_value;
    launches_.push_back({.run = runtime_.is_simulated() ? step.kernel->simulated : step.kernel->run,
                         .context = {.inputs = {values, step.inputs},
                                     .outputs = {values + step.inputs, step.outputs},
                                     .attributes = &step.node->attributes,
                                     .destroyed = &step.destroyed},
                         .name = step.node->op->name,
                         .run_merged = step.kernel->run_merged});
    if (step.kernel->prepare && !runtime_.is_simulated())
      prepare(launches_.size() - 1, stream, cache);
    if (!step.kernel->can_be_captured) not_captured_ = step.node->op->name;
    if (!checks_indices(*step.node->op, launches_.back().context, runtime_, NanCheck::none))
      continue;
    checks_indices_ = true;
    not_captured_ = step.node->op->name;
  }
  if (runtime_.is_host()) find_given_indices();
  if (!runtime_.profile().captures_programs || runtime_.is_simulated())
    not_captured_ = "the device captures no programs";
  else if (not_captured_ && logs_debug())
    log_debug(message(not_captured_,
                      "cannot be captured: the session's program runs launch by launch", {}));
}

// CPU kernels check their indices themselves. After an update that is too late, because a run that
// fails must change nothing. So the indices of such steps are checked first.
void Executable::find_given_indices() {
  std::set<std::pair<Location::Kind, std::uint32_t>> updated;
  for (std::size_t s = 0; s < program_.steps.size(); ++s) {
    const Step& step = program_.steps[s];
    const OpDef& op = *step.node->op;
    const auto location = [&](std::size_t input) {
      return program_.values[step.first_value + input].location;
    };
    if (op.indices && !updated.empty()) {
      const Location from = location(op.indices(launches_[s].context).input);
      const bool is_given = from.kind == Location::feed || from.kind == Location::captured ||
                            from.kind == Location::variable;
      if (is_given && !updated.contains({from.kind, from.index})) given_indices_.push_back(s);
    }
    for (std::size_t i = 0; i < step.inputs; ++i)
      if (op.updates.has(i)) updated.emplace(location(i).kind, location(i).index);
  }
}

void Executable::prepare(std::size_t step, Stream* stream, detail::PreparedCache& cache) {
  const Step& of = program_.steps[step];
  std::vector<Spec> specs;
  for (std::size_t i = 0; i < of.inputs + of.outputs; ++i)
    specs.push_back(program_.values[of.first_value + i].spec);
  prepared_.push_back(cache.find_or_prepare(runtime_, *of.node->op, *of.kernel,
                                            {.inputs = {specs.data(), of.inputs},
                                             .outputs = {specs.data() + of.inputs, of.outputs},
                                             .attributes = &of.node->attributes,
                                             .destroyed = &of.destroyed,
                                             .unwanted = &of.unwanted,
                                             .profile = &runtime_.profile(),
                                             .allocator = &runtime_.allocator(),
                                             .stream = stream,
                                             .workspace_bytes = of.workspace_bytes}));
  launches_[step].context.prepared = prepared_.back().get();
}

void* Executable::address(const Location& location) const noexcept {
  switch (location.kind) {
    case Location::arena:
      return arena_ + program_.arena_offsets[location.index] + location.offset;
    case Location::variable:
      return static_cast<std::byte*>(variables_->data(location.index)) + location.offset;
    case Location::captured:
      return captured_storage(*program_.captured[location.index]).data() + location.offset;
    case Location::host:
      return host_ + location.offset;
    case Location::nowhere:
    case Location::feed:
    case Location::fetch:
      break;  // patched in by run()
  }
  return nullptr;
}

void Executable::check(const SessionVariables& variables) {
  if (variables.tears()) variables.require_whole(program_.variables);
  if (Storage::tears() != tears_) require_whole_captured();
  if (bound_) return;
  for (const std::uint32_t index : program_.variables)
    if (!variables.is_initialized(index))
      refuse("run", "variable '" + variables.declaration(index).name +
                        "' has no value; call initialize or restore first");
  for (const Node* node : program_.captured) {
    const Device& where = captured_storage(*node).device();
    if (&where.runtime() != &runtime_ && !runtime_.is_simulated())
      refuse("run",
             "the graph captured a tensor on " + where.name() + " and the session runs on " +
                 runtime_.name(),
             node->site);
  }
}

void Executable::bind(const Arena& arena, SessionVariables& variables) {
  if (bound_ && arena.data() == arena_ && arena.host_data() == host_ &&
      poisons_ == runtime_.poisons())
    return;
  capture_.reset();
  poisons_ = runtime_.poisons();
  arena_ = arena.data();
  host_ = arena.host_data();
  variables_ = &variables;
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    buffers_[i].data = address(program_.values[i].location);
  for (std::size_t i = 0; i < launches_.size(); ++i)
    if (const std::uint32_t workspace = program_.steps[i].workspace; workspace != ~std::uint32_t{0})
      launches_[i].context.workspace = arena_ + program_.arena_offsets[workspace];
  bound_ = true;
}

void Executable::require_whole_captured() {
  const std::uint64_t tears = Storage::tears();
  for (const Node* node : program_.captured)
    require_whole(captured_storage(*node), "run", node->site);
  tears_ = tears;
}

Tensors Executable::copy_updated(std::span<const Tensor*> feeds) const {
  Tensors copies;
  copies.reserve(feeds.size() * program_.updated_captured.size());
  for (const std::uint32_t index : program_.updated_captured)
    for (const Tensor*& feed : feeds)
      if (&captured_storage(*program_.captured[index]) == feed->impl()->storage.get()) {
        const TapeModeScope no_history(without_history());
        copies.push_back(feed->clone());
        feed = &copies[copies.size() - 1];
      }
  return copies;
}

// Memory that a run reads and writes in place, in use for its duration.
class Executable::UseOfAll : NoCopy {
 public:
  UseOfAll(const Executable& executable, Stream* stream, std::span<const Tensor* const> feeds,
           const Tensors& fetches)
      : executable_(executable), stream_(stream), feeds_(feeds) {
    if (!executable_.runtime_.has_streams()) return;
    for_each([&](const Storage& storage) { storage.use_on(stream_); });
    for (const Tensor& fetch : fetches)
      fetch.impl()->storage->use_on(stream_);  // not shared with anyone yet
  }
  ~UseOfAll() {
    if (!executable_.runtime_.has_streams()) return;
    for_each([&](const Storage& storage) { storage.used_on(stream_); });
  }

 private:
  template <class Function>
  void for_each(const Function& function) const {
    for (const Patch& patch : executable_.feed_patches_)
      function(*feeds_[patch.index]->impl()->storage);
    for (const Node* node : executable_.program_.captured) function(captured_storage(*node));
  }

  const Executable& executable_;
  Stream* const stream_;
  const std::span<const Tensor* const> feeds_;
};

// Large feeds from the host go through page-locked memory. The host then waits for the copies of
// the run before, which are first in that run, and not for its kernels.
void Executable::fill_slots(Arena& arena, Stream* stream, std::span<const Tensor* const> feeds) {
  const auto staged_bytes = [&](const Tensor& feed) {
    const bool is_large = feed.bytes() > Backend::kAtOnce && runtime_.staging() &&
                          feed.impl()->storage->device().runtime().is_host();
    return is_large ? aligned_bytes(feed.bytes()) : 0;
  };
  std::size_t bytes = 0;
  for (const FeedSlot& slot : program_.feed_slots) bytes += staged_bytes(*feeds[slot.feed]);
  if (bytes > 0) runtime_.wait_for_copies(stream);
  std::byte* staging = bytes > 0 ? arena.staging(bytes) : nullptr;
  for (const FeedSlot& slot : program_.feed_slots) {
    const Tensor& feed = *feeds[slot.feed];
    if (!staging || staged_bytes(feed) == 0) {
      transfer(feed, runtime_, stream, address(slot.to));
      continue;
    }
    std::memcpy(staging, data(feed), feed.bytes());
    runtime_.copy_in_later(stream, address(slot.to), staging, feed.bytes());
    staging += staged_bytes(feed);
  }
}

// Waits for copies and collectives that a failed run has begun: nothing else would. Other ranks may
// have made the step that failed here.
void Executable::end_moves(Stream* stream, const char* cause) noexcept {
  for (const Step& step : program_.steps) {
    if (!step.node->op->communicates) continue;
    Communicator& world = *step.node->attributes.get<CollectiveAttributes>().world;
    world.drain();
    if (!runtime_.is_simulated()) world.fail(cause);
  }
  if (program_.plan.moved_values == 0) return;
  try {
    runtime_.synchronise(stream);
  } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a lost device copies nothing
  }
}

void Executable::run(Arena& arena, Stream* stream, std::span<const Tensor* const> feeds,
                     const Tensors& fetches) {
  for (const Patch& patch : feed_patches_)
    buffers_[patch.value].data = static_cast<std::byte*>(data(*feeds[patch.index])) + patch.offset;
  for (const Patch& patch : fetch_patches_)
    buffers_[patch.value].data = static_cast<std::byte*>(data(fetches[patch.index])) + patch.offset;
  for (const std::size_t step : given_indices_) require_in_range(step, 0, stream);
  const UseOfAll use(*this, stream, feeds, fetches);
  if (poisons_) runtime_.fill(stream, arena_, kPoison, program_.plan.arena_bytes);
  fill_slots(arena, stream, feeds);
  const bool one_by_one =
      poisons_ || checks_indices_ || detail::nan_check_on(runtime_) != NanCheck::none;
  try {
    const Launched launched = one_by_one ? launch_one_by_one(stream) : launch(stream);
    if (!launched.status.ok()) fail(launched, stream);
  } catch (const std::exception& error) {
    end_moves(stream, error.what());
    throw;
  }
  for (const std::uint32_t index : program_.updated_captured) {
    Storage& storage = captured_storage(*program_.captured[index]);
    storage.bump_version();
    Attempt::keep(storage);
  }
  for (std::size_t f = 0; f < fetches.size(); ++f) {
    const Fetch& fetch = program_.fetches[f];
    const Location& location = fetch.copied_from;
    if (location.kind == Location::nowhere) continue;
    std::optional<Storage::Use> use;
    const void* from = address(location);
    if (location.kind == Location::feed) {
      const Tensor& feed = *feeds[location.index];
      use.emplace(*feed.impl()->storage, stream);
      from = static_cast<std::byte*>(data(feed)) + location.offset;
    } else if (location.kind == Location::fetch) {
      from = static_cast<std::byte*>(data(fetches[location.index])) + location.offset;
    }
    runtime_.copy(stream, data(fetches[f]), from, fetch.spec.bytes());
  }
}

// Captures the program after its first run, if possible. A device may just have been short of
// memory, so a failed capture is tried again, after twice as many runs each time: a program that
// can never be captured pays for few attempts.
bool Executable::is_captured(Stream* stream) {
  if (capture_ || not_captured_ || launches_.empty() || runs_++ < next_capture_)
    return capture_ != nullptr;
  const char* problem = nullptr;
  capture_ = runtime_.capture(stream, launches_, problem);
  if (!capture_) next_capture_ *= 2;
  if (logs_debug())
    log_debug(capture_ ? "session: a program of " + std::to_string(launches_.size()) +
                             " launches is captured"
                       : std::string("session: a program is not captured now: ") + problem);
  return capture_ != nullptr;
}

Launched Executable::launch(Stream* stream) {
  if (!runtime_.has_streams()) return runtime_.run(stream, launches_);
  if (!capture_)
    for (Launch& launch : launches_) launch.context.stream = stream;
  if (!is_captured(stream)) return runtime_.run(stream, launches_);
  // A failed replay does not say how far it came.
  const Status status = runtime_.replay(stream, *capture_);
  return {status, status.ok() ? launches_.size() : status.refused ? 0 : launches_.size() - 1};
}

// Launches step by step, to poison memory after its last use, or to check indices and outputs.
Launched Executable::launch_one_by_one(Stream* stream) {
  const NanCheck check = nan_check_on(runtime_);
  auto dying = program_.arena_lives.begin();
  for (std::size_t now = 0; now < launches_.size(); ++now) {
    launches_[now].context.stream = stream;
    if (checks_indices(*program_.steps[now].node->op, launches_[now].context, runtime_, check))
      require_in_range(now, now, stream);
    const Launched launched = runtime_.run(stream, {&launches_[now], 1});
    if (!launched.status.ok()) return {launched.status, now};
    if (check != NanCheck::none) refuse_nan(now, check, stream);
    for (; poisons_ && dying != program_.arena_lives.end() && dying->last == now; ++dying)
      runtime_.fill(stream, arena_ + dying->offset, kPoison, dying->bytes);
  }
  return {{}, launches_.size()};
}

void Executable::refuse_nan(std::size_t step, NanCheck check, Stream* stream) {
  const CallSite site = program_.steps[step].node->site;
  const std::string found = find_nan(launches_[step].context, check, runtime_, stream, site);
  if (found.empty()) return;
  tear(step + 1);
  const Node& node = *program_.steps[step].node;
  throw NotANumber(in_run(step, message(node.op->name, found, node.site)));
}

void Executable::require_in_range(std::size_t step, std::size_t touched, Stream* stream) {
  const Node& node = *program_.steps[step].node;
  const std::string found =
      find_out_of_range(*node.op, launches_[step].context, runtime_, stream, node.site);
  if (found.empty()) return;
  tear(touched);
  throw Error(in_run(step, found));
}

std::string Executable::in_run(std::size_t step, std::string text) const {
  const CallSite site = program_.steps[step].node->site, run = entry();
  if (program_.plan.micro_batches > 1) text += ", with rows counted from 0 in each micro-batch";
  // For code traced by compile(), the run's line is also the operator's.
  const bool is_other = run.line != site.line || std::string_view(run.file) != site.file;
  return is_other ? std::move(text) + ", in a run" + at(run) : std::move(text);
}

// Marks as torn what the first `touched` steps have updated, since the run was not completed.
void Executable::tear(std::size_t touched) {
  for (std::size_t s = 0; s < touched; ++s) {
    const Step& step = program_.steps[s];
    for (std::size_t i = 0; i < step.inputs; ++i) {
      if (!step.node->op->updates.has(i)) continue;
      const Location& location = program_.values[step.first_value + i].location;
      if (location.kind == Location::variable)
        variables_->tear(location.index, step.node->op->name);
      if (location.kind != Location::captured) continue;
      Storage& storage = captured_storage(*program_.captured[location.index]);
      storage.tear(step.node->op->name);
      storage.bump_version();
    }
  }
}

void Executable::fail(const Launched& launched, Stream* stream) {
  tear(launched.count + (launched.status.refused ? 0 : 1));
  const Node& node = *program_.steps[launched.count].node;
  throw Error(
      in_run(launched.count, describe_failure(*node.op, launches_[launched.count].context,
                                              launched.status, runtime_, stream, node.site)));
}

memory::Breakdown breakdown_of(const memory::Pool& pool, const Arena& arena,
                               std::span<const Program* const> programs,
                               const memory::Profile& profile) {
  memory::Breakdown breakdown;
  breakdown.arena_bytes = arena.allocated_bytes();
  breakdown.page_locked_bytes = arena.host_bytes();
  breakdown.staged_bytes = arena.staged_bytes();
  std::vector<const Node*> captured;
  for (const Program* program : programs) {
    breakdown.workspace_bytes = std::max(breakdown.workspace_bytes, program->plan.workspace_bytes);
    captured.insert(captured.end(), program->captured.begin(), program->captured.end());
  }
  breakdown.captured_bytes = captured_bytes(captured, profile);
  const memory::Stats stats = pool.stats();
  breakdown.total_bytes = stats.allocated.current;
  breakdown.reserved_bytes = stats.reserved.current;
  return breakdown;
}

}  // namespace ebb::detail
