#pragma once
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/operand.h"

namespace ebb {

namespace memory {

// Figures of a device's memory as i64 scalars on it, for programs that are graphs and for eager
// ones that keep them beside their losses; stats() gives the same to the host. In use are the
// allocated bytes, those of sessions and of the scalar itself included; the maximum is that since
// reset_peaks(); the limit is set_limit()'s, on reserved bytes, or what the device has in all where
// there is none or a higher one, so that comparing with it is right. On a simulated device they
// take their bytes and have no values.
//
// Read once `after` has been computed: for a symbolic tensor in each run, of the device that the
// session runs on, at this place in the order of the run; for a concrete one now and on its device.
// Of `after` nothing else is used and no gradient passes. Throw Error for a number.
Tensor bytes_in_use(const Operand& after);
Tensor max_bytes_in_use(const Operand& after);
Tensor bytes_limit(const Operand& after);

// Now, of `device`; while a graph traces the calling thread, in each run of it, where the program
// has it. Those of a graph that follow no tensor are in graph/memory_figures.h.
Tensor bytes_in_use(const Device& device, CallSite site = CallSite::here());
Tensor max_bytes_in_use(const Device& device, CallSite site = CallSite::here());
Tensor bytes_limit(const Device& device, CallSite site = CallSite::here());

}  // namespace memory

// No input, or the tensor to follow.
extern const OpDef bytes_in_use_op, max_bytes_in_use_op, bytes_limit_op;

}  // namespace ebb
