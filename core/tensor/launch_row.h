#pragma once
#include <vector>

#include "ebb/core/base/call_site.h"
#include "ebb/core/device/backend.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/storage.h"
#include "ebb/core/tensor/tape_mode.h"

namespace ebb::detail {

// Whether an update of this target sets all of its memory, so that it is whole again.
bool sets_all(const OpDef& op, const TensorImpl& target) noexcept;
// The kernel of `op` has updated its targets, which are among its inputs: Input or Tensor.
template <class T>
void mark_updated(const OpDef& op, std::span<const T> inputs) noexcept;
// The kernel has failed and may have written half of its targets.
template <class T>
void tear_updated(const OpDef& op, std::span<const T> inputs) noexcept;

// While one lives, in-place updates of the calling thread wait in it, except updates with a
// history. Their host and device memory is allocated when they are added, so flush() makes them
// all, as one step, without running out. Neighbours that the device can merge run as one kernel
// (DeviceKernel::run_merged). Any other operator flushes the row first. Updates not flushed at the
// end of its life, after an exception, have not happened.
class LaunchRow {
 public:
  // Whether a failed attempt() takes the updates back, or they are a step that stays.
  enum Kind { taken_back, stays };
  explicit LaunchRow(Kind kind = taken_back) noexcept;
  ~LaunchRow();

  Kind kind() const noexcept { return kind_; }
  // Adds an update. The row keeps everything that the launch refers to.
  void add(Runtime& runtime, const OpDef& op, const Launch& launch, Inputs inputs,
           const Tensors& results, Ref<Storage> workspace, Ref<Prepared> prepared, CallSite site);
  // Queues all updates on the stream. Throws Error with the operator's name and line; targets that
  // have been written are torn then.
  void flush();

 private:
  struct Update {
    const OpDef* op;
    Attributes attributes;
    IndexSet destroyed;
    std::size_t first_buffer, first_tensor;  // outputs' follow the inputs'
    Ref<Storage> workspace;
    Ref<Prepared> prepared;
    CallSite site;
  };
  struct Kept {
    std::vector<Update> updates;
    std::vector<Launch> launches;  // one for each update
    std::vector<Buffer> buffers;
    std::vector<Tensor> tensors;  // inputs, then outputs after the first, which is an input

    void clear() noexcept;
  };
  // Vectors of the thread's last row, empty, so that a step does not allocate them anew. Null after
  // the thread's own objects have ended: destructors of static objects may make steps.
  static Kept* spare() noexcept;
  // Points launches at their kept data, which moves while updates are added.
  void bind() noexcept;
  void run(std::size_t& begun);
  std::span<const Tensor> inputs_of(std::size_t update) const noexcept {
    return std::span(kept_.tensors)
        .subspan(kept_.updates[update].first_tensor, kept_.launches[update].context.inputs.size());
  }

  const Kind kind_;
  const TapeModeScope in_row_;
  Runtime* runtime_ = nullptr;
  Kept kept_;
};

}  // namespace ebb::detail
