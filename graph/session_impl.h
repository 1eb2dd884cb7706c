#pragma once
#include <atomic>
#include <exception>
#include <list>
#include <unordered_map>

#include "ebb/core/device/host_bytes.h"
#include "ebb/core/device/lent_stream.h"
#include "ebb/core/parameters/checkpoint.h"
#include "ebb/graph/executable.h"
#include "ebb/graph/session.h"
#include "ebb/graph/session_mutex.h"

namespace ebb {

namespace detail {
class InputFile;
}

// What Session and its prepared steps share. Functions without a lock argument take the lock.
class Session::Impl : public std::enable_shared_from_this<Session::Impl> {
 public:
  Impl(const Graph& graph, const SessionOptions& options);
  ~Impl() { close_now(); }

  // The session's lock, for a scope. Where the handle went meanwhile, the session is closed at its
  // end.
  class Lock {
   public:
    explicit Lock(Impl& session) : Lock(&session) {}
    ~Lock() {
      if (!session_) return;
      session_->mutex.unlock();
      session_->close_if_left();
    }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   protected:
    explicit Lock(Impl* session) : session_(session) {
      if (session_) session_->mutex.lock();
    }

   private:
    Impl* const session_;
  };
  // The same for what only looks: inside the session as well.
  struct Look : Lock {
    explicit Look(Impl& session) : Lock(session.mutex.is_mine() ? nullptr : &session) {}
  };

  // What a plan was made for: fetches and their versions, then placeholders and their shapes.
  using PlanKey = std::vector<std::int64_t>;
  struct CachedPlan {
    PlanKey key;
    std::vector<Shape> shapes;  // of the feeds
    detail::Executable executable;
    bool has_variables = false;  // the session has memory for those that it touches
    bool kept = false;           // it is, or was, among the session's plans
    std::size_t graph_size = 0;  // when last looked up: a graph that grew may mean something else
    std::uint64_t resumes = 0;   // of the session, when it was last bound
  };
  // Placeholders in the order of the program, whatever order they are given in.
  struct Feeding {
    explicit Feeding(const GraphState& graph, std::span<const Tensor* const> placeholders);
    Tensors placeholders;              // sorted
    std::vector<std::size_t> sources;  // which of those given each is
  };

  Tensors run(const Tensors& fetches, const Feeds& feeds);
  // The values of the placeholders in the order they were given in; `plan` remembers the plan from
  // call to call.
  Tensors run_prepared(const Tensors& fetches, const Feeding& feeding,
                       std::span<const Tensor* const> values, std::shared_ptr<CachedPlan>& plan);

  // While it lives, the operations on variables have the lock, of an open session with all
  // parameters in memory, and the graph stays as it is. Where an exception leaves its scope, the
  // memory that it obtained goes back.
  class OpenVariables {
   public:
    explicit OpenVariables(Impl& session);
    ~OpenVariables();
    OpenVariables(const OpenVariables&) = delete;
    OpenVariables& operator=(const OpenVariables&) = delete;

    // Memory for these, where they have none yet.
    void provide(std::span<const std::uint32_t> indices = {});
    void provide(std::size_t index) {
      const std::uint32_t indices[] = {static_cast<std::uint32_t>(index)};
      provide(indices);
    }

   private:
    const std::shared_ptr<Impl> session_;  // its handle may go meanwhile, in the call of a watch
    const Lock lock_;
    const GraphState::Reading reading_;
    detail::SessionVariables& variables_;
    const int exceptions_ = std::uncaught_exceptions();
    std::vector<detail::SessionVariables::Added> added_;
  };
  // The same of two sessions, or of one.
  struct OpenBoth {
    OpenBoth(Impl& a, Impl& b);
    OpenVariables first;
    std::optional<OpenVariables> second;
  };
  std::size_t variable_index(const Tensor& variable, const char* what) const;
  // The variables of these entries. Throws Error for those of another graph.
  using EntryLists = std::initializer_list<const std::vector<Parameters::Entry>*>;
  std::vector<std::size_t> variable_indices(EntryLists lists, const char* what) const;
  // Of a checkpoint, with the lock held.
  void save(const std::string& file, const std::vector<std::size_t>& indices,
            detail::RandomState random, const Resumable* loader = nullptr);
  void restore(OpenVariables& open, const std::string& file,
               const std::vector<std::size_t>& indices, detail::RandomState random,
               Resumable* loader = nullptr);
  // The same of all variables, locking.
  void save_all(const std::string& file, const Resumable* loader);
  void restore_all(const std::string& file, Resumable* loader);
  // Values of `from`, which `source` holds (null: they are eager), with all locks held.
  void require_values_of(const Impl& other) const;
  void copy_values(const Impl* source, const Parameters& from, const Parameters& to);

  memory::Breakdown memory();
  std::size_t available() const;  // with the lock held
  memory::CloseReport close();
  // The session's handle goes: closes. Inside a run of its own, and where waiting for another's is
  // forbidden, that is left to whoever has the lock.
  void end() noexcept;
  memory::CloseReport suspend(const std::string* file);
  void resume();

  const Graph graph;
  const SessionOptions options;
  Device device;
  const LentStream stream;
  std::size_t preallocated = 0;  // constant after construction, like all up to `mutex`
  const std::unique_ptr<memory::Pool> pool;
  detail::SessionVariables variables;

  detail::SessionMutex mutex;  // guards what follows, and runs
  using Plans = std::list<std::shared_ptr<CachedPlan>>;
  Plans plans;                       // most recently used first
  std::atomic<bool> closed = false;  // these two are read without it too
  std::atomic<bool> is_suspended = false;

  // Where the values are while the device has none of them.
  struct Suspended {
    std::string file;          // else:
    HostBytes values;          // one after the other
    std::uint64_t digest = 0;  // of what was written to the file
    ~Suspended();              // removes it
  };
  std::unique_ptr<Suspended> suspended;
  std::uint64_t resumes = 0;  // after one the variables may be elsewhere

 private:
  void close_if_left() noexcept;
  memory::CloseReport close_now() noexcept;  // with the lock held
  void require_open() const;
  // A new one is not among the session's plans before there was memory for a run of it.
  std::shared_ptr<CachedPlan> find_or_make_plan(const Tensors& fetches, const Feeding& feeding,
                                                std::vector<Shape> shapes);
  // What keep() needs for a new one, which can be found from then on.
  Plans enter(const std::shared_ptr<CachedPlan>& plan);
  void keep(Plans entered) noexcept;
  // An arena that is large enough, and has memory. Throws OutOfMemory; what was there stays usable.
  void provide_arena(const memory::Plan& plan);
  void restore_arena() noexcept;  // the one before
  // Everything is allocated and checked before the first kernel, and goes back where that fails.
  // `values` as the plan's feeds.
  Tensors execute(const std::shared_ptr<CachedPlan>& plan, std::span<const Tensor* const> values);
  // Says which batch would have fitted, where that can be found out.
  [[noreturn]] void rethrow_with_hint(const OutOfMemory& error, const Tensors& fetches,
                                      const Feeding& feeding, const std::vector<Shape>& shapes);
  std::optional<std::int64_t> largest_batch(const Tensors& fetches, const Feeding& feeding,
                                            const std::vector<Shape>& shapes);
  std::size_t room_of_device() const;
  // Calls call(memory of the device, bytes) for every value, in pieces of at most so many bytes.
  template <class Call>
  void for_each_piece(std::size_t most, const Call& call) const;
  void write_values(Suspended& to) const;
  void read_values(const Suspended& from, const detail::InputFile* file) const;
  // The feeds, or copies of those whose memory the program updates as a captured tensor.
  void copy_updated_feeds(const detail::Program& program, std::span<const Tensor*> feeds,
                          Tensors& copies) const;

  struct KeyHash {
    std::size_t operator()(const PlanKey& key) const noexcept;
  };
  std::unordered_map<PlanKey, Plans::iterator, KeyHash> plan_of_;
  memory::Block* arena_ = nullptr;
  memory::Request arena_request_;  // what it was allocated for
  memory::Composition arena_composition_;
  std::atomic<unsigned> left_ = 0;  // 1: the handle has gone, and the lock was not to be had
};

namespace detail {
// Throws Error, ShapeError for what cannot be fed for a placeholder.
void check_feed(const Node& placeholder, const Tensor& value, const Device& device);
}  // namespace detail

}  // namespace ebb
