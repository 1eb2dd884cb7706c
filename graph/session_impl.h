#pragma once
#include <list>
#include <mutex>

#include "ebb/core/checkpoint.h"
#include "ebb/graph/executable.h"
#include "ebb/graph/session.h"

namespace ebb {

// What Session and its prepared steps share. Functions without a lock argument take the lock.
class Session::Impl {
 public:
  Impl(const Graph& graph, const SessionOptions& options);
  ~Impl() { close(); }

  // A plan and what it was made for.
  struct Entry {
    std::vector<std::pair<const Node*, std::uint32_t>> fetches;
    FedShapes shapes;
    detail::Executable executable;
  };

  Tensors run(const Tensors& fetches, const Feeds& feeds);
  // The values of `placeholders`, in order; `entry` remembers the plan from call to call.
  Tensor run_prepared(const Tensors& fetch, const Tensors& placeholders,
                      std::span<const Tensor* const> values, std::shared_ptr<Entry>& entry);

  // For the operations on variables: the lock, with the session open and all variables in memory.
  std::unique_lock<std::mutex> open_variables();
  // The same of two sessions, or of one.
  static std::array<std::unique_lock<std::mutex>, 2> open_both(Impl& a, Impl& b);
  std::size_t variable_index(const Tensor& variable, const char* what) const;
  // The variables of these entries. Throws Error for those of another graph.
  using EntryLists = std::initializer_list<const std::vector<Parameters::Entry>*>;
  std::vector<std::size_t> variable_indices(EntryLists lists, const char* what) const;
  // Of a checkpoint, with the lock held.
  void save(const std::string& file, const std::vector<std::size_t>& indices,
            detail::RandomState random);
  void restore(const std::string& file, const std::vector<std::size_t>& indices);
  // Values of `from`, which `source` holds (null: they are eager), with all locks held.
  void require_values_of(const Impl& other) const;
  void copy_values(const Impl* source, const Parameters& from, const Parameters& to);

  memory::Breakdown memory() const;
  memory::CloseReport close();

  const Graph graph;
  const SessionOptions options;
  Device device;
  const std::unique_ptr<memory::Pool> pool;
  detail::SessionVariables variables;

  mutable std::mutex mutex;                 // guards what follows, and runs
  std::list<std::shared_ptr<Entry>> plans;  // most recently used first
  bool closed = false;

 private:
  void require_open() const;
  std::shared_ptr<Entry> find_or_make_plan(const Tensors& fetches, FedShapes shapes);
  // Makes the arena large enough. Nothing lives in it between runs, so that the old one goes first.
  void provide_arena(const memory::Plan& plan);
  Tensors execute(Entry& entry, std::span<void* const> feeds);

  memory::Block* arena_ = nullptr;
};

namespace detail {
// The address of a value fed for a placeholder of `spec`, checked. Throws ShapeError, Error.
void* check_feed(const Node& placeholder, const Tensor& value, const Device& device);
}  // namespace detail

}  // namespace ebb
