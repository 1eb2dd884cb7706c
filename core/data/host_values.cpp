#include "ebb/core/data/host_values.h"

#include "ebb/core/base/error.h"
#include "ebb/core/device/simulation.h"
#include "ebb/core/tensor/trace.h"

namespace ebb::detail {

void require_values(const Tensor& tensor, const char* what, const std::string& which,
                    bool to_be_saved) {
  refuse_while_tracing(what, entry());
  if (!tensor.defined() || tensor.is_symbolic() || is_shape_only(*tensor.impl()))
    refuse(what, which + " has no values: it is " + tensor.to_string());
  const Runtime& runtime = tensor.impl()->storage->device().runtime();
  if (!runtime.has_values() && !(to_be_saved && runtime.simulation()))
    refuse<SimulatedRead>(what, which + " has no values, since its device is simulated: it is " +
                                    tensor.to_string() + kGiveValues);
  require_whole(*tensor.impl()->storage, what, entry());
}

}  // namespace ebb::detail
