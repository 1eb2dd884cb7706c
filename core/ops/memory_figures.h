#pragma once
#include "ebb/core/ops/arguments.h"

namespace ebb {

namespace memory {

// Figures of a device's memory as i64 scalars on that device: for programs that are graphs, and for
// eager ones that keep them beside their losses. stats() gives the same figures to the host. On a
// simulated device they take their bytes and have no values.
//
// With `after`, a figure is read once that tensor has been computed. For a symbolic one that is in
// each run, on the session's device, at this place in the order of the run; for a concrete one now,
// on its device. `after` serves for nothing else and no gradient passes to it. Throw Error for a
// number.

// The bytes allocated on a device, by sessions and for this scalar too.
Tensor bytes_in_use(const Operand& after);
// The maximum of bytes_in_use since reset_peaks().
Tensor max_bytes_in_use(const Operand& after);
// The limit on reserved bytes (set_limit), or the device's capacity where that is lower or there is
// no limit.
Tensor bytes_limit(const Operand& after);

// The figures of `device` now. While a graph traces the calling thread: in each run of it, at this
// place of the program. For figures of a graph that follow no tensor, see graph/create.h.
Tensor bytes_in_use(const Device& device, CallSite site = CallSite::here());
Tensor max_bytes_in_use(const Device& device, CallSite site = CallSite::here());
Tensor bytes_limit(const Device& device, CallSite site = CallSite::here());

}  // namespace memory

// Input: none, or the tensor to follow.
extern const OpDef bytes_in_use_op, max_bytes_in_use_op, bytes_limit_op;

}  // namespace ebb
