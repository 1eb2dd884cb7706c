#pragma once
#include "ebb/core/kernels/kernel.h"
#include "ebb/core/tensor/op_def.h"
#include "ebb/core/tensor/tape_mode.h"

namespace ebb {

struct DetectNanOptions {
  bool infinity = false;  // an infinite value counts as well
};

namespace detail {
inline TapeMode detecting(const DetectNanOptions& options) noexcept {
  TapeMode mode = tape_mode();
  mode.detects = options.infinity ? Unwanted::not_finite : Unwanted::nan;
  return mode;
}
}  // namespace detail

// While one is alive, each operator that the calling thread runs, eagerly, in backward() or in
// Session::run, is waited for and what it wrote is looked through: the first one with a NaN throws
// NotANumber with its name, its line, and the element, and says whether it made the NaN or was
// given it. An update that wrote one has torn what it updated. Indices and labels of a GPU are
// looked at before they are used; one out of range throws Error, as it always does on the CPU. For
// finding a mistake: the values of a GPU are copied to the host for it, and programs do not run
// captured.
//
//   DetectNan detect;
//   loss.backward();
class DetectNan {
 public:
  explicit DetectNan(DetectNanOptions options = {}) noexcept : scope_(detail::detecting(options)) {}

 private:
  detail::TapeModeScope scope_;
};

namespace detail {
// Where an element is, for messages: "2, 3"; "" in a scalar.
std::string place_of(std::int64_t element, const Shape& shape);
// Waits for an operator that `stream` has run, and looks through its floating outputs: what is
// wrong with the first that has what is not to be, or nothing.
std::string find_unwanted(const KernelContext& context, Unwanted unwanted, Runtime& runtime,
                          Stream* stream);
}  // namespace detail

}  // namespace ebb
