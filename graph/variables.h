#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/core/device/runtime.h"
#include "ebb/graph/graph_state.h"

namespace ebb::detail {

// Values of a graph's variables in one session. All parameters have one. Other variables
// (optimizers' slots, counts, random state) get one when a plan or call first needs it, so that a
// session that only evaluates holds no moments. Parameters share a segment of the session's pool,
// other variables another; later ones get further segments. Slots start at zero. A budget may have
// all slots lie in page-locked memory of the host instead, where kernels reach them.
class SessionVariables {
 public:
  // `random_key`: key of the session's draws.
  SessionVariables(GraphState& graph, Runtime& runtime, Stream* stream, memory::Pool& pool,
                   std::uint64_t random_key)
      : graph_(graph), runtime_(runtime), stream_(stream), pool_(pool), random_key_(random_key) {}

  using Indices = std::vector<std::uint32_t>;
  // Variables that share a block of the pool, one behind the other.
  struct Segment {
    memory::Block* block = nullptr;
    Indices indices = {};
  };
  // Result of allocate().
  struct Added {
    Segment parameters, slots;
  };
  // Allocates every parameter declared so far and these other variables, which then have values.
  // Throws OutOfMemory, and Error if the device fails; nothing has changed then.
  Added allocate(std::span<const std::uint32_t> others = {});
  // Takes an allocation back, when the operation that needed it has failed. If no slot is left on
  // the host, the next ones may lie on the device again.
  void release(const Added& added) noexcept;
  // Forgets all memory: the session's pool is closed.
  void forget() noexcept {
    values_.clear();
    host_pool_.reset();
    looked_at_ = tears_ = 0;
    parameter_bytes_ = slot_bytes_ = reserved_parameter_bytes_ = reserved_slot_bytes_ = 0;
  }
  std::size_t parameter_bytes() const noexcept { return parameter_bytes_; }
  std::size_t slot_bytes() const noexcept { return on_host_ ? 0 : slot_bytes_; }
  // Bytes that the pool reserves for all variables once `others` have memory: whole pages for each
  // segment. With `slots_on_host`, once slots lie there.
  std::size_t reserved_bytes_with(std::span<const std::uint32_t> others,
                                  bool slots_on_host = false) const;
  // Bytes reserved, once all variables have memory, beyond the figure of a plan of all of them: a
  // plan counts two segments, but there may be more.
  std::size_t bytes_beyond_plans() const;

  // Moves slots to the host, and lets later ones go there. Throws OutOfMemory, and Error if the
  // device fails; nothing has changed then.
  void keep_slots_on_host();
  bool slots_on_host() const noexcept { return on_host_; }
  std::size_t host_bytes() const noexcept { return on_host_ ? slot_bytes_ : 0; }

  Indices indices() const;  // of all declared variables
  // Number of declared variables, with or without memory.
  std::size_t size() const noexcept { return graph_.variables().size(); }
  const VariableDeclaration& declaration(std::size_t index) const {
    return graph_.variables()[index];
  }
  // All variables by full name, or the parameters and states alone. Throws Error naming both lines
  // if two sets of Parameters share a name.
  enum Which : bool { all, parameters };
  std::unordered_map<std::string_view, std::size_t> by_name(Which which, const char* what) const;
  bool has_memory(std::size_t index) const noexcept {
    return index < values_.size() && values_[index].has_memory;
  }
  bool is_on_host(std::size_t index) const noexcept {
    return on_host_ && declaration(index).category != memory::Category::parameter;
  }
  bool is_initialized(std::size_t index) const noexcept {
    return index < values_.size() && values_[index].initialized;
  }

  // Marks a variable as torn: a run failed after `by` had begun to update it, and it holds half a
  // step until it is set.
  void tear(std::size_t index, const char* by) noexcept;
  // Number of torn variables.
  std::size_t tears() const noexcept { return tears_; }
  // Throws Error if one of these is torn.
  void require_whole(std::span<const std::uint32_t> indices) const;

  // Throws Error in the name of `what` if the variable has no value or is torn.
  void require_value(std::size_t index, const char* what) const;

  // The functions below need variables with memory, and run in the order of the session's stream.
  std::byte* data(std::size_t index) const noexcept {
    const Value& value = values_[index];
    return value.block ? static_cast<std::byte*>(value.block->data()) + value.offset : nullptr;
  }
  // Draws the initial value. Random state stays: a run never repeats the numbers of another.
  void draw_initial(std::size_t index);
  // Writes a value of the declared spec from the host, a tensor or another session.
  void write(std::size_t index, const void* value);
  void write(std::size_t index, const Tensor& value);
  void write(std::size_t index, const SessionVariables& others, std::size_t other);
  // Host view of the variable's values.
  HostView view(std::size_t index) const;
  // Zeroes a variable that a checkpoint lacks; random state stays.
  void zero(std::size_t index);

 private:
  // What allocate() would add, still without blocks.
  Added missing(std::span<const std::uint32_t> others) const;
  std::size_t rounded_bytes(std::span<const std::uint32_t> indices) const noexcept;
  struct Value {
    memory::Block* block = nullptr;  // null on the host of a simulated device
    std::size_t offset = 0;
    bool has_memory = false, initialized = false;
    const char* torn_by = nullptr;
  };
  // Notes that all of the variable is set.
  void is_set(std::size_t index) noexcept;
  // Allocates a segment's block and gives each of its variables an offset there.
  void provide(Segment& segment);
  bool is_random_state(std::size_t index) const noexcept {
    return static_cast<std::int64_t>(index) == graph_.random_state();
  }
  // Sets the first value of a slot.
  void begin(std::size_t index);
  std::size_t rounded_bytes(const VariableDeclaration& variable) const noexcept;

  GraphState& graph_;
  Runtime& runtime_;
  Stream* const stream_;
  memory::Pool& pool_;
  const std::uint64_t random_key_;
  std::vector<Value> values_;  // by index; as far as looked at
  std::size_t looked_at_ = 0;  // all parameters declared before this index have memory
  std::size_t parameter_bytes_ = 0, slot_bytes_ = 0;
  // Of the variables' segments, also while the pool is suspended.
  std::size_t reserved_parameter_bytes_ = 0, reserved_slot_bytes_ = 0;
  std::size_t tears_ = 0;
  bool on_host_ = false;                     // slots
  std::unique_ptr<memory::Pool> host_pool_;  // null on a simulated device
};

}  // namespace ebb::detail
