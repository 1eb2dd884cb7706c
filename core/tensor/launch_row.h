#pragma once
#include <memory>
#include <vector>

#include "ebb/core/base/call_site.h"
#include "ebb/core/device/backend.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/storage.h"
#include "ebb/core/tensor/tape_mode.h"

namespace ebb::detail {

// Whether an update of this target sets all of its memory, so that it is whole again.
bool sets_all(const OpDef& op, const TensorImpl& target) noexcept;
// The kernel of `op` has updated what it updates of its inputs; or has failed, and may have written
// half of it.
void mark_updated(const OpDef& op, Inputs inputs) noexcept;
void tear_updated(const OpDef& op, Inputs inputs) noexcept;

// While one lives, the calling thread's eager updates in place wait in it, those with a history
// excepted. They have all the memory of host and device that they need, and flush() makes them
// without allocating: so it is one step, of which all or nothing happens. Neighbours that a device
// can run as one kernel (DeviceKernel::run_merged) are. Whatever else is run flushes it first. What
// has not been flushed when it ends, after an exception, has not happened.
class LaunchRow {
 public:
  // Whether a failed attempt() takes the updates back, or they are a step that stays made.
  enum Kind { taken_back, stays };
  explicit LaunchRow(Kind kind = taken_back) noexcept : kind_(kind), in_row_(with(this)) {}

  Kind kind() const noexcept { return kind_; }
  // The row keeps all that the launch refers to.
  void add(Runtime& runtime, const OpDef& op, const Launch& launch, Inputs inputs,
           const Tensors& results, Ref<Storage> workspace, Ref<Prepared> prepared, CallSite site);
  // Puts all into the stream. Throws Error, with the operator's name and line: what has been
  // written is torn then.
  void flush();

 private:
  struct Update {
    const OpDef* op;
    Attributes attributes;
    IndexSet destroyed;
    std::size_t first_buffer, first_input;  // the buffers of outputs follow those of inputs
    Ref<Storage> workspace;
    Ref<Prepared> prepared;
    CallSite site;
  };
  static TapeMode with(LaunchRow* row) noexcept {
    TapeMode mode = tape_mode();
    mode.row = row;
    return mode;
  }
  // Lets launches and inputs refer to what is kept for them, which moves while more are added.
  void bind() noexcept;
  void run(std::size_t& begun);
  Inputs inputs_of(std::size_t update) const noexcept {
    return Inputs(inputs_).subspan(updates_[update].first_input,
                                   launches_[update].context.inputs.size());
  }

  const Kind kind_;
  const TapeModeScope in_row_;
  Runtime* runtime_ = nullptr;
  std::vector<Update> updates_;
  std::vector<Launch> launches_;  // of each
  std::vector<Buffer> buffers_;
  std::vector<Input> inputs_;
  std::vector<Tensor> tensors_;  // of the inputs, one for each
  std::vector<Tensor> results_;  // beside the first ones, which are inputs
};

}  // namespace ebb::detail
