#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "ebb/core/kernels/kernel.h"
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/tape_mode.h"

namespace ebb {

class Runtime;  // core/device/runtime.h

// An input whose elements are in [0, size): indices along an axis, or labels of classes.
struct IndexRange {
  enum Kind : std::uint8_t { index, label };
  Kind kind = index;
  std::size_t input = 1;
  std::int64_t size = 0;
  std::optional<std::int64_t> ignored = {};  // a label that may be out of range
  bool check_labels = false;                 // on a GPU as well
  const char* function = nullptr;  // the public one, where the operator is called otherwise
};

namespace detail {

// Whether the host looks at an operator's indices before the kernel runs. A kernel of the CPU looks
// by itself; one of a GPU does not, and is waited for where check_labels asks or DetectNan.
bool checks_indices(const OpDef& op, const KernelContext& context, const Runtime& runtime,
                    Unwanted detects);

// The error of the first index that is out of range, or "". Waits for what `stream` has to do.
std::string find_out_of_range(const OpDef& op, const KernelContext& context, Runtime& runtime,
                              Stream* stream, CallSite site);

// The error of a kernel that answered `status`.
std::string describe_failure(const OpDef& op, const KernelContext& context, const Status& status,
                             Runtime& runtime, Stream* stream, CallSite site);

}  // namespace detail
}  // namespace ebb
