#include "ebb/core/tensor/op_def.h"

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"

namespace ebb {

void Inference::fail(const std::string& text) const {
  std::string all = text;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    all += (i                    ? ", "
            : inputs.size() == 1 ? "; the input is "
                                 : "; inputs are ") +
           inputs[i].to_string();
  throw ShapeError(detail::message(op.name, all, site));
}

const DeviceKernel& kernel_of(const OpDef& op, const Runtime& runtime) {
  if (!op.cpu.run)
    throw Error("[" + std::string(op.name) + "] has no kernel for device " + runtime.name());
  return op.cpu;
}

}  // namespace ebb
