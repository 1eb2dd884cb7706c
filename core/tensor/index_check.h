#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "ebb/core/kernels/kernel.h"
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/tape_mode.h"

namespace ebb {

class Runtime;  // core/device/runtime.h

// An input whose elements must be in [0, size): indices along an axis, or class labels. From each
// index on `taken` of them are used, so that it is at most size - taken.
struct IndexRange {
  enum Kind : std::uint8_t { index, label };
  Kind kind = index;
  std::size_t input = 1;
  std::int64_t size = 0;
  std::int64_t taken = 1;
  bool one_per_row = false;                  // messages leave out the last axis, of size 1
  std::optional<std::int64_t> ignored = {};  // a label permitted out of range
  bool check_labels = false;                 // check labels on a GPU too
  const char* function = nullptr;  // public function named in messages; null: the operator's name
};

namespace detail {

// Whether the host must check an operator's indices before the kernel runs. CPU kernels check by
// themselves. GPU kernels do not: with check_labels or DetectNan the host waits and checks.
bool checks_indices(const OpDef& op, const KernelContext& context, const Runtime& runtime,
                    NanCheck nan_check);

// Error text for the first index out of range, or "". Waits for all work on `stream`.
std::string find_out_of_range(const OpDef& op, const KernelContext& context, Runtime& runtime,
                              Stream* stream, CallSite site);

// Error text for a kernel that returned `status`.
std::string describe_failure(const OpDef& op, const KernelContext& context, const Status& status,
                             Runtime& runtime, Stream* stream, CallSite site);

}  // namespace detail
}  // namespace ebb
