#pragma once
#include <vector>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/core/runtime.h"
#include "ebb/graph/graph_state.h"

namespace ebb::detail {

// The values of a graph's variables in one session: laid out in one segment of the session's pool,
// slots included; variables declared later get a further one.
class SessionVariables {
 public:
  // `random_key`: under which the session draws.
  SessionVariables(GraphState& graph, Runtime& runtime, memory::Pool& pool,
                   std::uint64_t random_key)
      : graph_(graph), runtime_(runtime), pool_(pool), random_key_(random_key) {}

  // Memory for every variable declared so far. Throws OutOfMemory, with nothing changed.
  void allocate();
  // The session's pool is closed: nothing is left to be freed.
  void forget() noexcept {
    values_.clear();
    parameter_bytes_ = slot_bytes_ = 0;
  }
  std::size_t parameter_bytes() const noexcept { return parameter_bytes_; }
  std::size_t slot_bytes() const noexcept { return slot_bytes_; }

  void* data(std::size_t index) const noexcept { return values_[index].data; }
  bool is_initialized(std::size_t index) const noexcept {
    return index < values_.size() && values_[index].initialized;
  }
  const VariableDeclaration& declaration(std::size_t index) const {
    return graph_.variables()[index];
  }
  std::size_t size() const noexcept { return values_.size(); }

  // Draws nothing for the random state, which goes on: a run never repeats the numbers of another.
  void draw_initial(std::size_t index);
  // Writes a value of the declared spec.
  void write(std::size_t index, const void* value) noexcept;
  // Zeros where a checkpoint says nothing; the random state stays what it is.
  void zero(std::size_t index) noexcept;
  // Adds one to the count that random draws of the next run depend on, if the graph draws.
  void count_run() noexcept;

 private:
  struct Value {
    std::byte* data = nullptr;
    bool initialized = false;
  };
  bool is_random_state(std::size_t index) const noexcept {
    return static_cast<std::int64_t>(index) == graph_.random_state();
  }
  void begin_random_state(std::size_t index) noexcept;
  std::size_t rounded_bytes(const VariableDeclaration& variable) const noexcept;

  GraphState& graph_;
  Runtime& runtime_;
  memory::Pool& pool_;
  const std::uint64_t random_key_;
  std::vector<Value> values_;
  std::size_t parameter_bytes_ = 0, slot_bytes_ = 0;
};

}  // namespace ebb::detail
