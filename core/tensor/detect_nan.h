#pragma once
#include "ebb/core/kernels/kernel.h"
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/tape_mode.h"

namespace ebb {

struct DetectNanOptions {
  bool infinity = false;  // an infinite value counts as well
};

namespace detail {
void refuse_while_tracing(const char* what, CallSite site);

inline TapeMode detecting(const DetectNanOptions& options, CallSite site) {
  refuse_while_tracing("DetectNan", site);
  TapeMode mode = tape_mode();
  mode.nan_check = options.infinity ? NanCheck::not_finite : NanCheck::nan;
  return mode;
}
}  // namespace detail

// While one is alive, every operator of the calling thread (eager, in backward() or in
// Session::run) is waited for and its outputs are searched. The first NaN throws NotANumber with
// the operator's name and line and the element, and says whether the operator made the NaN or was
// given it. An update that wrote one has torn its target. Indices and labels on a GPU are checked
// before they are used; one out of range throws Error, as it always does on the CPU. For debugging:
// outputs on a GPU are copied to the host, and programs do not run captured. Sessions and compiled
// steps make other plans for it, which fuse nothing. A compiled step is watched from outside: made
// inside of one, it throws Error.
//
//   DetectNan detect;
//   loss.backward();
class DetectNan {
 public:
  explicit DetectNan(DetectNanOptions options = {}, CallSite site = CallSite::here())
      : scope_(detail::detecting(options, site)) {}

 private:
  detail::TapeModeScope scope_;
};

namespace detail {
// Index of an element for messages: "2, 3"; "" in a scalar.
std::string place_of(std::int64_t element, const Shape& shape);
// Waits for an operator that `stream` has run and searches its floating outputs. Describes the
// first unwanted value, or returns "". On a twin whose prediction gives values, the first element
// of each output is read, for `site`.
std::string find_nan(const KernelContext& context, NanCheck check, Runtime& runtime, Stream* stream,
                     CallSite site);
// The calling thread's check; none on a simulated device without values.
NanCheck nan_check_on(const Runtime& runtime) noexcept;
}  // namespace detail

}  // namespace ebb
