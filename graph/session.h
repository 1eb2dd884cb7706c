#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ebb/allocator/limit.h"
#include "ebb/allocator/statistics.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/graph/graph.h"

namespace ebb {

namespace memory {
// What a session holds, in allocated bytes.
struct Breakdown {
  std::size_t parameter_bytes = 0;
  std::size_t optimizer_state_bytes = 0;  // and other slots
  std::size_t feed_bytes = 0;
  std::size_t arena_bytes = 0;      // kept between runs, though nothing lives in it then
  std::size_t workspace_bytes = 0;  // the largest workspace of the plans kept, inside the arena
  std::size_t total_bytes = 0;      // workspace not counted twice
  std::size_t reserved_bytes = 0;   // the same in pages of the device
};
}  // namespace memory

struct SessionOptions {
  Device device = Device::cpu();
  // On what the session's pool reserves: bytes, or memory::Limit::fraction(of the capacity).
  std::optional<memory::Limit> memory_limit = {};
  // Whether that is reserved at once or as needed. Without a limit, all that the device has left
  // but a sixteenth, which is 256 MiB at most: fetches come from the device's shared memory, never
  // from what a session has reserved. A GPU keeps 5 %, at least 512 MiB but never more than half.
  memory::Growth growth = memory::Growth::on_demand;
  std::size_t max_plans = 16;  // kept; the least recently used goes first
  // Whether plans drop nodes that change nothing and let outputs take over inputs. Off, every node
  // runs as it was written and each result has memory of its own.
  bool passes = true;
  // Of what the session draws at random: the same seed repeats a session. By default each has a key
  // of its own, taken from the generator of the thread that makes it (set_seed).
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
// What reads or writes values throws SessionClosed once the session is closed or moved from, and
// OutOfMemory where memory does not suffice: then every variable is as it was, random state
// included, and the session holds what it held before, so that a smaller batch runs at once.
class Session {
 public:
  explicit Session(const Graph& graph, const SessionOptions& options = {});
  Session(const Graph& graph, const Device& device)
      : Session(graph, SessionOptions{.device = device}) {}
  ~Session();  // closes
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  // Draws the initial values of these parameters, of the set or a scope of it, and sets their slots
  // to zero, where all slots start. Random state goes on, so that no run repeats another's numbers.
  // Throws Error for parameters of another graph, with nothing changed.
  void initialize(const Parameters& parameters, CallSite site = CallSite::here());
  // All variables of the graph.
  void initialize(CallSite site = CallSite::here());

  // Computes the fetches: what the lines that built them would have computed eagerly, pruned to
  // what the fetches need. Updates run only as ancestors of a fetch. Fetched tensors are in the
  // device's shared memory, belong to the caller and outlive the session. Throws Error for a
  // placeholder that is needed and not fed or fed with another dtype, a variable never initialised,
  // tensors of another graph; ShapeError for fed shapes that do not fit.
  Tensor run(const Tensor& fetch, const Feeds& feeds = {}, CallSite site = CallSite::here());
  Tensors run(const Tensors& fetches, const Feeds& feeds = {}, CallSite site = CallSite::here());
  // auto [loss, scores] = session.run({a, b}, feeds);
  template <std::size_t N>
  std::array<Tensor, N> run(const Tensor (&fetches)[N], const Feeds& feeds = {},
                            CallSite site = CallSite::here());

  // A run whose fetches and placeholders are looked up once: step(value, value, ...).
  PreparedStep prepare(const Tensor& fetch, const Tensors& placeholders,
                       CallSite site = CallSite::here());
  // auto step = session.prepare({a, b}, {x}); auto [loss, scores] = step(value);
  template <std::size_t N>
  PreparedSteps<N> prepare(const Tensor (&fetches)[N], const Tensors& placeholders,
                           CallSite site = CallSite::here());

  // The same for as many as a list has, a std::vector<Tensor> or a span: step(value) gives Tensors.
  PreparedSteps<std::dynamic_extent> prepare(const Tensors& fetches, const Tensors& placeholders,
                                             CallSite site = CallSite::here());

  // A copy of a variable's value. Throws Error where it has none, which slots always have.
  Tensor value(const Tensor& variable, CallSite site = CallSite::here());
  // Sets a variable's value. Throws ShapeError for another shape or dtype, SimulatedRead for a
  // tensor of a simulated device in a session of a real one.
  void assign(const Tensor& variable, const Tensor& value, CallSite site = CallSite::here());

  // Writes the values of `from`, parameters and state, into this session's `to`: eager parameters
  // or other ones of this graph (a target network from the online one). Each name is taken below
  // its handle; slots stay. Throws Error naming the first that one of the two lacks or that has no
  // value, ShapeError the first that differs in shape or dtype; then nothing has changed.
  void copy_from(const Parameters& from, const Parameters& to, CallSite site = CallSite::here());
  // The same from parameters of another session's graph.
  void copy_from(const Session& other, const Parameters& from, const Parameters& to,
                 CallSite site = CallSite::here());
  // All parameters and state of this session's graph, from those of the same full names in the
  // other's: an evaluation session from the one that trains. What only the other has is left alone.
  void copy_from(const Session& other, CallSite site = CallSite::here());

  // All values, slots, counts and random state (the session's, and the calling thread's generator);
  // either mode reads the file. Throws FileError, Error for variables without value. As restore()
  // and copy_from() of a whole session, throws Error where two sets of Parameters have one name.
  void save(const std::string& file, CallSite site = CallSite::here());
  // Those of the set or scope, without random state.
  void save(const std::string& file, const Parameters& parameters,
            CallSite site = CallSite::here());
  // Reads what save or Parameters::save wrote: all that file and graph share. Slots that the file
  // lacks start at zero, entries that the graph lacks are left alone. Random state, the session's
  // and the calling thread's, is taken from the file, so that a session of the same graph goes on
  // bit for bit, dropout included, and two restored from one file draw alike; from a file without
  // one nothing changes in it. Throws FileError naming the first parameter that is missing or
  // differs, and OutOfMemory where the host has no room for a second copy of the values, which it
  // takes meanwhile; then nothing has changed.
  void restore(const std::string& file, CallSite site = CallSite::here());
  // The same with the position of a DataLoader, which goes on where it was: with a session of the
  // same graph the losses that come are those that would have come, bit for bit, in the middle of
  // an epoch too; a loop that `break` has left is gone on with (see DataLoader). save throws Error
  // where the position is empty, restore FileError where the file has none, or that of a loader of
  // other data or batches; then nothing has changed.
  void save(const std::string& file, const Resumable& loader, CallSite site = CallSite::here());
  void restore(const std::string& file, Resumable& loader, CallSite site = CallSite::here());
  // That set or scope alone: its parameters and state, and unless the option says otherwise its
  // slots. Nothing else changes.
  void restore(const std::string& file, const Parameters& parameters,
               const RestoreOptions& options = {}, CallSite site = CallSite::here());

  memory::Breakdown memory() const;
  // The figures of the session's pool.
  memory::Stats stats() const;
  // The most that Plan::reserved_bytes of this session's next run may be: what its limit and the
  // device leave, with what it has. Fetches need room on the device besides.
  std::size_t available() const;
  // At any time; lowered below what is held, the arena gives way, which the next run needs again,
  // and only what is asked for anew is refused.
  void set_memory_limit(std::optional<memory::Limit> limit);
  std::size_t plans() const;
  const Device& device() const;

  // Lends the device's memory to others for a while: moves the values of all variables to plain
  // memory of the host, or to a new file, which resume() and close() remove, and gives everything
  // back to the device. (On the CPU only a file frees memory: the host's is the same.) Until
  // resume() the session refuses what needs values, by an Error. Waits for a run in progress; a
  // second call does nothing. Says what was freed and returned. Throws FileError where the file is
  // there already or cannot be written, and OutOfMemory where the host has no room for the values,
  // with nothing changed.
  memory::CloseReport suspend();
  memory::CloseReport suspend(const std::string& file);
  // Brings everything back, at the same addresses where the device can: prepared steps go on as if
  // nothing had been. Throws OutOfMemory, and FileError also where the file does not hold what
  // suspend() has written; the session stays suspended then, and holds nothing of the device.
  void resume();
  bool suspended() const noexcept;

  // Waits for a run in progress and gives everything back to the device: afterwards the session
  // holds no byte. Closing twice is harmless, as is closing a session that was moved from.
  memory::CloseReport close();
  bool closed() const noexcept;  // or moved from

 private:
  class Impl;
  friend class PreparedStep;
  PreparedStep prepare_all(Tensors fetches, const Tensors& placeholders, CallSite site);
  // A shared_ptr that throws SessionClosed where the session was moved from.
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

// From Session::prepare. Holds nothing of the session's memory; running it after close() throws
// SessionClosed, running one that was moved from throws Error. Not for two threads at once.
class PreparedStep {
 public:
  // The values of the placeholders, in their order.
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

// The same with N fetches, or with those of a list.
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
