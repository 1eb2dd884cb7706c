#pragma once
#include <atomic>
#include <exception>
#include <list>
#include <map>

#include "ebb/core/base/no_copy.h"
#include "ebb/core/device/host_bytes.h"
#include "ebb/core/device/lent_stream.h"
#include "ebb/core/parameters/checkpoint.h"
#include "ebb/graph/arena.h"
#include "ebb/graph/executable.h"
#include "ebb/graph/session.h"
#include "ebb/graph/session_mutex.h"

namespace ebb {

namespace detail {
class InputFile;
}

// State shared by a Session and its prepared steps. Functions without a lock argument take the
// lock.
class Session::Impl {
 public:
  Impl(const Graph& graph, const SessionOptions& options);
  ~Impl() { close_now(); }

  // Holds the session's lock for a scope. If the handle went meanwhile, closes the session at the
  // end.
  class Lock : NoCopy {
   public:
    explicit Lock(Impl& session) : Lock(&session) {}
    ~Lock() {
      if (!session_) return;
      session_->mutex.unlock();
      session_->close_if_left();
    }

   protected:
    explicit Lock(Impl* session) : session_(session) {
      if (session_) session_->mutex.lock();
    }

   private:
    Impl* const session_;
  };
  // For functions that only look: also works inside the session, where the lock is held.
  struct Look : Lock {
    explicit Look(Impl& session) : Lock(session.mutex.is_mine() ? nullptr : &session) {}
  };

  // Key of a plan: fetches and their versions, then placeholders and their shapes.
  using PlanKey = std::vector<std::int64_t>;
  // A program with its addresses, kept for later runs of the same fetches and shapes.
  struct CachedProgram {
    PlanKey key;
    std::vector<Shape> shapes;  // of the feeds
    detail::Executable executable;
    bool has_variables = false;  // its variables have memory
    bool looks_for_nan = false;  // made for runs that do
    bool kept = false;           // it is, or was, among the session's plans
    std::size_t graph_size = 0;  // at the last look-up: in a graph that grew, a fetch may mean
                                 // something else
    std::uint64_t moves = 0;     // Impl::moves at the last bind
  };
  // Placeholders sorted into the order of the program.
  struct Feeding {
    explicit Feeding(const GraphState& graph, std::span<const Tensor* const> placeholders);
    Tensors placeholders;              // sorted
    std::vector<std::size_t> sources;  // position of each among the given placeholders
  };

  Tensors run(const Tensors& fetches, const Feeds& feeds);
  // Runs with values in the order in which the placeholders were given. `plan` keeps the plan from
  // call to call.
  Tensors run_prepared(const Tensors& fetches, const Feeding& feeding,
                       std::span<const Tensor* const> values, std::shared_ptr<CachedProgram>& plan);

  // Scope of an operation on variables, for the user's line. Holds the lock of an open session with
  // all parameters in memory, and keeps the graph from growing. If an exception leaves the scope,
  // memory obtained in it goes back.
  class OpenVariables : NoCopy {
   public:
    OpenVariables(const Pointer& session, CallSite site);
    ~OpenVariables();

    Impl* operator->() const noexcept { return session_.get(); }

    // Allocates variables that have no memory yet.
    void provide(std::span<const std::uint32_t> indices = {});
    void provide(std::size_t index) {
      const std::uint32_t indices[] = {static_cast<std::uint32_t>(index)};
      provide(indices);
    }

   private:
    const detail::CallSiteScope scope_;
    const std::shared_ptr<Impl> session_;  // the handle may go meanwhile, in a watch call
    const Lock lock_;
    const GraphState::Reading reading_;
    const int exceptions_ = std::uncaught_exceptions();
    std::vector<detail::SessionVariables::Added> added_;
  };
  // OpenVariables of two sessions, or of one.
  struct OpenBoth {
    OpenBoth(Pointer a, Pointer b, CallSite site);  // copies: a handle may go in a watch call
    OpenVariables first;
    std::optional<OpenVariables> second;
  };
  std::size_t variable_index(const Tensor& variable, const char* what) const;
  using Indices = detail::SessionVariables::Indices;
  // The variables of a set or scope. Throws Error for an empty one or one of another graph.
  Indices variable_indices(const Parameters& parameters, const char* what, bool slots = true) const;
  // With the lock held. Draws the initial values of those that have memory.
  void draw_initial(const Indices& indices);
  // Write and read a checkpoint of all variables, or of a set or scope (then without random state).
  void save(OpenVariables& open, const std::string& file, const Parameters* parameters,
            const Resumable* loader);
  void restore(OpenVariables& open, const std::string& file, const Parameters* parameters,
               bool slots, Resumable* loader);
  // Copies values of `from`, held by `source` (null: they are eager), with all locks held.
  void require_values_of(const Impl& other) const;
  void copy_values(const Impl* source, const Parameters& from, const Parameters& to);

  memory::Breakdown memory();
  std::size_t available() const;  // with the lock held
  memory::CloseReport close();
  // Closes the session when its handle goes. If this thread is inside the session, or in a watch
  // call, which must not wait for another thread, the holder of the lock closes it later.
  void end() noexcept;
  memory::CloseReport suspend(const std::string* file);
  void resume();

  const Graph graph;
  const SessionOptions options;
  Device device;
  const std::optional<std::size_t> budget;  // in bytes; worked out once, as capacities are slow
  const LentStream stream;
  std::size_t preallocated = 0;  // constant after construction, like all up to `mutex`
  const std::unique_ptr<memory::Pool> pool;
  detail::SessionVariables variables;

  detail::SessionMutex mutex{"Session", "this session"};  // guards the members below, and runs
  detail::Arena arena;
  using Plans = std::list<std::shared_ptr<CachedProgram>>;
  Plans plans;                       // most recently used first
  detail::PreparedCache prepared;    // for all plans
  std::atomic<bool> closed = false;  // these two are also read without the lock
  std::atomic<bool> is_suspended = false;

  // The values while the device has none of them.
  struct Suspended {
    std::string file;          // if not empty, holds them; else:
    HostBytes values;          // one behind the other
    std::uint64_t digest = 0;  // of the file's contents
    ~Suspended();              // removes the file
  };
  std::unique_ptr<Suspended> suspended;
  void keep_slots_on_host() {
    variables.keep_slots_on_host();
    ++moves;
  }
  std::uint64_t moves = 0;  // times that variables may have moved: by a resume, or to the host

 private:
  void close_if_left() noexcept;
  memory::CloseReport close_now() noexcept;  // with the lock held
  void require_open() const;
  bool keeps_to_budget(const CachedProgram& plan) const;
  // A new plan joins the session's plans only once there was memory to run it.
  std::shared_ptr<CachedProgram> find_or_make_plan(const Tensors& fetches, const Feeding& feeding,
                                                   std::vector<Shape> shapes);
  // Enters a plan not yet kept into the index, so that it can be found; returns the list for
  // keep().
  Plans enter(const std::shared_ptr<CachedProgram>& plan);
  void keep(Plans entered) noexcept;
  // As run_prepared(), with the lock held.
  Tensors run_planned(const Tensors& fetches, const Feeding& feeding,
                      std::span<const Tensor* const> given, std::shared_ptr<CachedProgram>& plan);
  // Allocates and checks everything before the first kernel; gives it back if that fails. `feeds`:
  // in the plan's order. Those that the program updates are replaced by copies.
  Tensors execute(const std::shared_ptr<CachedProgram>& plan, std::span<const Tensor*> feeds);
  // Rethrows with the batch that would have fitted, if that can be found out.
  [[noreturn]] void rethrow_with_hint(const OutOfMemory& error, const Tensors& fetches,
                                      const Feeding& feeding, const std::vector<Shape>& shapes);
  std::optional<std::int64_t> largest_batch(const Tensors& fetches, const Feeding& feeding,
                                            const std::vector<Shape>& shapes);
  std::size_t room_of_device() const;
  // Calls call(memory of the device, bytes) for every value, in pieces of at most `most` bytes.
  template <class Call>
  void for_each_piece(std::size_t most, const Call& call) const;
  void write_values(Suspended& to) const;
  void read_values(const Suspended& from, const detail::InputFile* file) const;

  std::map<PlanKey, Plans::iterator> plan_of_;
  std::atomic<unsigned> left_ = 0;  // 1: the handle has gone while the lock was taken
};

namespace detail {
// Throws Error, or ShapeError, if `value` cannot be fed for the placeholder.
void check_feed(const Node& placeholder, const Tensor& value, const Device& device);
}  // namespace detail

}  // namespace ebb
