#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ebb/allocator/limit.h"
#include "ebb/allocator/statistics.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/core/parameters/torch_weights.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/passes.h"

namespace ebb {

namespace detail {
template <std::size_t N>
std::array<Tensor, N> array_of(Tensors tensors) {
  std::array<Tensor, N> array;
  std::move(tensors.begin(), tensors.end(), array.begin());
  return array;
}
}  // namespace detail

namespace memory {
// Memory that a session holds, in allocated bytes.
struct Breakdown {
  std::size_t parameter_bytes = 0;
  std::size_t optimizer_state_bytes = 0;  // and other slots
  std::size_t feed_bytes = 0;
  std::size_t arena_bytes = 0;        // kept between runs, though it holds no values then
  std::size_t workspace_bytes = 0;    // largest workspace of the kept plans, inside the arena
  std::size_t captured_bytes = 0;     // of tensors that the kept plans have captured: the device's
  std::size_t page_locked_bytes = 0;  // of the host, for values and slots that plans move there
  std::size_t staged_bytes = 0;       // page-locked too: large feeds from the host pass through
  std::size_t total_bytes = 0;     // of the device: workspace not counted twice, without captured
  std::size_t reserved_bytes = 0;  // total_bytes in whole pages of the device
};
}  // namespace memory

struct SessionOptions {
  Device device = Device::cpu();
  // Limit of the bytes that the session's pool reserves: bytes, or memory::Limit::fraction(of the
  // capacity).
  std::optional<memory::Limit> memory_limit = {};
  // Whether to reserve memory at once or as needed. At once without a limit means all memory left
  // on the device but a sixteenth, at most 256 MiB: fetches come from the device's shared memory,
  // never from a session's. On a GPU at least 5 % and 512 MiB are left, but never more than half.
  memory::Growth growth = memory::Growth::on_demand;
  // Most bytes that the session's pool may reserve, like memory_limit; each plan is made to keep to
  // it (memory::PlanOptions). A run that cannot throws Error with the least budget that would do,
  // and nothing has changed.
  std::optional<memory::Limit> budget = {};
  std::size_t max_plans = 16;  // plans kept; the least recently used goes first
  Passes passes = {};          // that plans take; false: none
  // Seed of the session's draws: the same seed repeats a session. By default each session takes a
  // key of its own from the generator of the thread that makes it (set_seed).
  std::optional<Seed> seed = {};
};

// A value for a placeholder.
struct Feed {
  Tensor placeholder;
  Tensor value;
};
using Feeds = std::vector<Feed>;

class PreparedStep;
template <std::size_t N>
class PreparedSteps;

// Runs a graph on a device, and keeps the graph's variables and the memory of its plans until
// close(). Values belong to the session: two sessions of one graph share nothing. Runs of one
// session are serialised; every function may be called from any thread.
//
// Functions that read or write values throw SessionClosed if the session is closed or moved from,
// and OutOfMemory if memory runs out. Then every variable, random state included, and the memory
// held are as before, so that a smaller batch can run at once; slots that a budget has moved to the
// host stay there.
class Session {
 public:
  explicit Session(const Graph& graph, const SessionOptions& options = {});
  Session(const Graph& graph, const Device& device)
      : Session(graph, SessionOptions{.device = device}) {}
  ~Session();  // closes
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Draws the initial values of these parameters, of a set or a scope, and zeroes their slots.
  // Random state goes on, so that no run repeats another's numbers. Throws Error for parameters of
  // another graph, with nothing changed.
  void initialize(const Parameters& parameters, CallSite site = CallSite::here());
  // Initializes all variables of the graph.
  void initialize(CallSite site = CallSite::here());

  // Computes the fetches: what the lines that built them would compute eagerly, pruned to what the
  // fetches need. Updates run only as ancestors of a fetch. Fetched tensors are in the device's
  // shared memory, belong to the caller and outlive the session. Throws Error for a needed
  // placeholder that is not fed or fed with another dtype, a variable never initialised, tensors of
  // another graph; ShapeError for fed shapes that do not fit.
  Tensor run(const Tensor& fetch, const Feeds& feeds = {}, CallSite site = CallSite::here());
  Tensors run(const Tensors& fetches, const Feeds& feeds = {}, CallSite site = CallSite::here());
  // auto [loss, scores] = session.run({a, b}, feeds);
  template <std::size_t N>
  std::array<Tensor, N> run(const Tensor (&fetches)[N], const Feeds& feeds = {},
                            CallSite site = CallSite::here());

  // Prepares a run whose fetches and placeholders are looked up once: step(value, value, ...).
  PreparedStep prepare(const Tensor& fetch, const Tensors& placeholders,
                       CallSite site = CallSite::here());
  // auto step = session.prepare({a, b}, {x}); auto [loss, scores] = step(value);
  template <std::size_t N>
  PreparedSteps<N> prepare(const Tensor (&fetches)[N], const Tensors& placeholders,
                           CallSite site = CallSite::here());

  // Fetches as a list, a std::vector<Tensor> or a span: step(value) returns Tensors.
  PreparedSteps<std::dynamic_extent> prepare(const Tensors& fetches, const Tensors& placeholders,
                                             CallSite site = CallSite::here());

  // A copy of a variable's value. Throws Error if it has none; slots always have one.
  Tensor value(const Tensor& variable, CallSite site = CallSite::here());
  // Sets a variable's value. Throws ShapeError for another shape or dtype, SimulatedRead for a
  // tensor of a simulated device in a session of a real one.
  void assign(const Tensor& variable, const Tensor& value, CallSite site = CallSite::here());

  // Copies the values of `from`, parameters and state, to this session's `to`. `from` is eager or
  // belongs to this graph (a target network from the online network). Names are matched below the
  // handles; slots stay. Throws Error naming the first that one side lacks or that has no value,
  // ShapeError the first that differs in shape or dtype; then nothing has changed.
  void copy_from(const Parameters& from, const Parameters& to, CallSite site = CallSite::here());
  // Copies from parameters of another session's graph.
  void copy_from(const Session& other, const Parameters& from, const Parameters& to,
                 CallSite site = CallSite::here());
  // Copies all parameters and state of this session's graph from equal full names in the other's:
  // an evaluation session from the training session. Others of the other session are ignored.
  void copy_from(const Session& other, CallSite site = CallSite::here());

  // Saves all values, slots, counts and random state (the session's, and the calling thread's
  // generator); either mode reads the file. Throws FileError, and Error for variables without
  // value. Throws Error if two sets of Parameters share a name, as do restore() and copy_from() of
  // a whole session.
  void save(const std::string& file, CallSite site = CallSite::here());
  // Saves the values and slots of a set or scope, without random state.
  void save(const std::string& file, const Parameters& parameters,
            CallSite site = CallSite::here());
  // Restores from a file of save or Parameters::save everything that file and graph share. Slots
  // that the file lacks start at zero; entries that the graph lacks are ignored. Random state, the
  // session's and the calling thread's, is restored if the file has it. So a session of the same
  // graph goes on bit for bit, dropout included, and two restored from one file draw alike. Throws
  // FileError naming the first parameter that is missing or differs, and OutOfMemory if the host
  // has no room for a second copy of the values, which it takes meanwhile; then nothing has
  // changed.
  void restore(const std::string& file, CallSite site = CallSite::here());
  // With the position of a DataLoader, which goes on where it was. A session of the same graph then
  // gets the same losses, bit for bit, also in the middle of an epoch; a pass left by `break` is
  // continued (see DataLoader). save throws Error if the position is empty. restore throws
  // FileError if the file has no position, or one of a loader with other data or batches; then
  // nothing has changed.
  void save(const std::string& file, const Resumable& loader, CallSite site = CallSite::here());
  void restore(const std::string& file, Resumable& loader, CallSite site = CallSite::here());
  // Restores a set or scope alone: parameters, state and, unless the option says otherwise, slots.
  // Nothing else changes.
  void restore(const std::string& file, const Parameters& parameters,
               const RestoreOptions& options = {}, CallSite site = CallSite::here());
  // Sets parameters and states of a set or scope to a state_dict of PyTorch's: ebb::load_torch.
  void load_torch(const Parameters& parameters, const std::string& file,
                  const std::vector<TorchRule>& rules, CallSite site = CallSite::here());

  // Writes what `outputs` need as an ONNX model, for inference by other programs (opset 21, IR
  // version 10): write_onnx("model.onnx", {{"scores", scores}}). Its inputs are the placeholders
  // that they need, by their names, whose open sizes stay open. Parameters keep their names. The
  // same graph and values make the same file. On the host it takes one value at a time beside what
  // the nodes take. Throws Error for an operator that has no translation (docs/operators.md lists
  // those that have one), with the operator's line; for a name that two inputs, outputs or
  // parameters have; for a model above 2 GiB; and if ebb was built without protobuf. FileError as
  // save(). An old file stays as it was then.
  void write_onnx(const std::string& file, const std::vector<NamedTensor>& outputs,
                  CallSite site = CallSite::here());

  memory::Breakdown memory() const;
  // Statistics of the session's pool.
  memory::Stats stats() const;
  // The largest Plan::reserved_bytes that this session's next run can have: the room left by its
  // limit and the device, plus memory it holds. Fetches need room on the device besides.
  std::size_t available() const;
  // May be called at any time. If the limit falls below the memory held, the arena is given up,
  // though the next run needs one; other memory stays, and only new requests are refused.
  void set_memory_limit(std::optional<memory::Limit> limit);
  std::size_t plans() const;
  const Device& device() const;

  // Lends the device's memory to others for a while: moves the values of all variables there to
  // plain memory of the host, or to a new file, which resume() and close() remove, and gives
  // everything back to the device. (On the CPU only a file frees memory: the host's is the same.
  // Slots that a budget keeps in page-locked memory stay there.) Until resume(), calls that need
  // values throw Error. Waits for a run in progress; a second call does nothing. The report says
  // what was freed and returned. Throws FileError if the file exists or cannot be written, and
  // OutOfMemory if the host has no room for the values, with nothing changed.
  memory::CloseReport suspend();
  memory::CloseReport suspend(const std::string& file);
  // Brings everything back, at the same addresses if the device can: prepared steps go on as
  // before. Throws OutOfMemory, and FileError if the file no longer holds what suspend() wrote; the
  // session stays suspended then, and holds nothing of the device.
  void resume();
  bool suspended() const noexcept;

  // Waits for a run in progress and gives all memory back to the device: afterwards the session
  // holds no byte. Closing twice is harmless, as is closing a session that was moved from.
  memory::CloseReport close();
  bool closed() const noexcept;  // or moved from

 private:
  class Impl;
  friend class PreparedStep;
  PreparedStep prepare_all(Tensors fetches, const Tensors& placeholders, CallSite site);
  // A shared_ptr that throws SessionClosed if the session was moved from.
  class Pointer {
   public:
    Pointer() = default;
    explicit Pointer(std::shared_ptr<Impl> impl) noexcept : impl_(std::move(impl)) {}
    explicit operator bool() const noexcept { return static_cast<bool>(impl_); }
    Impl* operator->() const { return shared().get(); }
    Impl& operator*() const { return *shared(); }
    const std::shared_ptr<Impl>& shared() const;

   private:
    std::shared_ptr<Impl> impl_;
  };
  Pointer impl_;
};

// Made by Session::prepare. Holds nothing of the session's memory. Running it after close() throws
// SessionClosed, running a moved-from one throws Error. Not for two threads at once.
class PreparedStep {
 public:
  // Values of the placeholders, in their order.
  template <class... Values>
  Tensor operator()(const Values&... values) {
    return std::move(run(values...)[0]);
  }
  ~PreparedStep();
  PreparedStep(PreparedStep&&) noexcept;
  PreparedStep& operator=(PreparedStep&&) noexcept;

 private:
  friend class Session;
  template <std::size_t N>
  friend class PreparedSteps;
  struct State;
  explicit PreparedStep(std::unique_ptr<State> state);
  template <class... Values>
  Tensors run(const Values&... values) {
    static_assert((std::same_as<Values, Tensor> && ...), "a placeholder takes a Tensor");
    const Tensor* const pointers[] = {&values..., nullptr};
    return run_all(pointers, sizeof...(values));
  }
  Tensors run_all(const Tensor* const* values, std::size_t count);
  std::unique_ptr<State> state_;
};

// A prepared step with N fetches, or with a list of them.
template <std::size_t N>
class PreparedSteps {
 public:
  template <class... Values>
  auto operator()(const Values&... values) {
    if constexpr (N == std::dynamic_extent)
      return step_.run(values...);
    else
      return detail::array_of<N>(step_.run(values...));
  }

 private:
  friend class Session;
  explicit PreparedSteps(PreparedStep step) : step_(std::move(step)) {}
  PreparedStep step_;
};

template <std::size_t N>
std::array<Tensor, N> Session::run(const Tensor (&fetches)[N], const Feeds& feeds, CallSite site) {
  return detail::array_of<N>(run(Tensors(fetches, fetches + N), feeds, site));
}

inline PreparedSteps<std::dynamic_extent> Session::prepare(const Tensors& fetches,
                                                           const Tensors& placeholders,
                                                           CallSite site) {
  return PreparedSteps<std::dynamic_extent>(prepare_all(fetches, placeholders, site));
}

template <std::size_t N>
PreparedSteps<N> Session::prepare(const Tensor (&fetches)[N], const Tensors& placeholders,
                                  CallSite site) {
  return PreparedSteps<N>(prepare_all(Tensors(fetches, fetches + N), placeholders, site));
}

}  // namespace ebb
