#pragma once
#include <string_view>

#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/node.h"

namespace ebb {

struct VariableDeclaration;

// Seam 2: core's interface to a graph under construction. graph/ derives from it.
class Recorder : public detail::Counted {
 public:
  virtual ~Recorder() = default;
  // Adds a node; concrete inputs are captured. Throws the shape rule's errors.
  virtual Tensors record(const OpDef& op, Inputs inputs, const Attributes& attributes,
                         CallSite site) = 0;
  // Declares a value that each session keeps between runs. Its name is unique in its set of
  // Parameters; a graph may have several sets.
  virtual Tensor declare(const VariableDeclaration& declaration) = 0;
  // The node of a concrete tensor, which the graph refers to from now on. Throws Error for a result
  // with a history and for a tensor without values.
  virtual Tensor capture(const Tensor& concrete, const char* what, CallSite site) = 0;
  // The symbolic tensor of a copy that each run has for itself.
  virtual Tensor constant(const Tensor& concrete, const char* what, CallSite site) = 0;
  // Throws Error for a name that is taken.
  virtual Tensor placeholder(std::string_view name, const Spec& spec, CallSite site) = 0;
  // A draw {key, counter} of the random generator, new in every run (kernels/random.h).
  virtual Tensor draw(CallSite site) = 0;
  // Nodes recorded between these calls form a region: reverse mode computes their results again
  // instead of keeping them.
  virtual void begin_recompute() = 0;
  virtual void end_recompute() noexcept = 0;
};

namespace detail {
inline void destroy(Recorder* recorder) noexcept { delete recorder; }
}  // namespace detail

}  // namespace ebb
