#pragma once
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/core/device/runtime.h"
#include "ebb/graph/graph_state.h"

namespace ebb::detail {

// The values of a graph's variables in one session: all of its parameters, and of the others
// (optimizers' slots, counts, random state) those that a plan or a call has needed so far, so that
// a session that only evaluates holds no moments. Parameters have a segment of the session's pool,
// the others one; what is declared or needed later gets further ones. Slots start at zero.
class SessionVariables {
 public:
  // `random_key`: under which the session draws.
  SessionVariables(GraphState& graph, Runtime& runtime, Stream* stream, memory::Pool& pool,
                   std::uint64_t random_key)
      : graph_(graph), runtime_(runtime), stream_(stream), pool_(pool), random_key_(random_key) {}

  // What allocate() has added.
  struct Added {
    memory::Block* parameters = nullptr;
    memory::Block* slots = nullptr;
    std::vector<std::uint32_t> indices = {};
  };
  // Memory for every parameter declared so far and for these others, which have values then. Throws
  // OutOfMemory, and Error where the device fails; nothing has changed then.
  Added allocate(std::span<const std::uint32_t> others = {});
  // Takes it back: what it was added for has failed.
  void release(const Added& added) noexcept;
  // The session's pool is closed: nothing is left to be freed.
  void forget() noexcept {
    values_.clear();
    looked_at_ = tears_ = 0;
    parameter_bytes_ = slot_bytes_ = reserved_bytes_ = 0;
  }
  std::size_t parameter_bytes() const noexcept { return parameter_bytes_; }
  std::size_t slot_bytes() const noexcept { return slot_bytes_; }
  // What the pool has reserved for all of them once these others have memory: whole pages for each
  // segment.
  std::size_t reserved_bytes_with(std::span<const std::uint32_t> others) const;
  // How much more that is, once all that is declared has memory, than a plan of all of it counts,
  // which knows of two segments.
  std::size_t bytes_beyond_plans() const;

  // Of all declared, whether they have memory or not.
  std::size_t size() const noexcept { return graph_.variables().size(); }
  const VariableDeclaration& declaration(std::size_t index) const {
    return graph_.variables()[index];
  }
  // All declared by full name, or the parameters and states alone. Throws Error naming both lines
  // where two sets of Parameters have one name.
  enum Which : bool { all, parameters };
  std::unordered_map<std::string_view, std::size_t> by_name(Which which, const char* what) const;
  bool has_memory(std::size_t index) const noexcept {
    return index < values_.size() && values_[index].has_memory;
  }
  bool is_initialized(std::size_t index) const noexcept {
    return index < values_.size() && values_[index].initialized;
  }

  // A run has failed after `by` had begun to update the variable: it holds half a step, until it is
  // set.
  void tear(std::size_t index, const char* by) noexcept;
  // How many are like that.
  std::size_t tears() const noexcept { return tears_; }
  // Throws Error for one of these that is.
  void require_whole(std::span<const std::uint32_t> indices) const;
  void require_whole(std::size_t index) const {
    const std::uint32_t indices[] = {static_cast<std::uint32_t>(index)};
    if (tears_) require_whole(indices);
  }

  // The rest is for variables that have memory, and happens in the order of the session's stream.
  std::byte* data(std::size_t index) const noexcept {
    const Value& value = values_[index];
    return static_cast<std::byte*>(value.block->data()) + value.offset;
  }
  // Draws nothing for the random state, which goes on: a run never repeats the numbers of another.
  void draw_initial(std::size_t index);
  // Writes a value of the declared spec: the host's, a tensor's, or that of another session.
  void write(std::size_t index, const void* value);
  void write(std::size_t index, const Tensor& value);
  void write(std::size_t index, const SessionVariables& others, std::size_t other);
  // Its values as the host reads them.
  HostView view(std::size_t index) const;
  // Zeros where a checkpoint says nothing; the random state stays what it is.
  void zero(std::size_t index);

 private:
  // Those without memory.
  struct Missing {
    std::vector<std::uint32_t> parameters, slots;
  };
  Missing missing(std::span<const std::uint32_t> others) const;
  std::size_t rounded_bytes(std::span<const std::uint32_t> indices) const noexcept;
  struct Value {
    const memory::Block* block = nullptr;
    std::size_t offset = 0;
    bool has_memory = false;
    bool initialized = false;
    const char* torn_by = nullptr;
  };
  // It has a value now, all of it.
  void is_set(std::size_t index) noexcept;
  // One segment for these variables, and where each is in it.
  memory::Block* segment(std::span<const std::uint32_t> indices, const char* purpose);
  void lay_out(std::span<const std::uint32_t> indices, const memory::Block* block) noexcept;
  bool is_random_state(std::size_t index) const noexcept {
    return static_cast<std::int64_t>(index) == graph_.random_state();
  }
  // The first value of a slot.
  void begin(std::size_t index);
  std::size_t rounded_bytes(const VariableDeclaration& variable) const noexcept;

  GraphState& graph_;
  Runtime& runtime_;
  Stream* const stream_;
  memory::Pool& pool_;
  const std::uint64_t random_key_;
  std::vector<Value> values_;  // by index; as far as looked at
  std::size_t looked_at_ = 0;  // parameters declared before have memory
  std::size_t parameter_bytes_ = 0, slot_bytes_ = 0;
  std::size_t reserved_bytes_ = 0;  // of their segments, also while the pool is suspended
  std::size_t tears_ = 0;
};

}  // namespace ebb::detail
