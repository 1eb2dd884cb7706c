// The kernels of the CUDA part as operators name them: each goes on to the one of its name in the
// part, which was loaded when the device was opened that now runs it.
#include "ebb/core/kernels/cross_entropy.h"
#include "ebb/core/kernels/device_figures.h"
#include "ebb/core/kernels/functors/families.h"
#include "ebb/core/kernels/linear.h"
#include "ebb/core/kernels/norm.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/kernels/random.h"
#include "ebb/core/kernels/recurrent.h"
#include "ebb/core/kernels/reduce.h"
#include "ebb/core/kernels/slice.h"
#include "ebb/core/kernels/softmax.h"
#include "ebb/core/kernels/update.h"
#include "ebb/kernels/cuda/host/load.h"
#include "ebb/optim/kernels/accumulator.h"
#include "ebb/optim/kernels/clip.h"
#include "ebb/optim/kernels/learning_rate.h"
#include "ebb/optim/kernels/update.h"

namespace ebb::cuda {

#define EBB_KERNEL(name) \
  Status name(const KernelContext& context) { return loaded().name(context); }
#define EBB_PREPARED(name)                                         \
  EBB_KERNEL(name)                                                 \
  detail::Ref<Prepared> name##_prepare(const MemoryQuery& query) { \
    return loaded().name##_prepare(query);                         \
  }
#define EBB_MERGED(name)                                   \
  EBB_KERNEL(name)                                         \
  Status name##_merged(std::span<const Launch> launches) { \
    return loaded().name##_merged(launches);               \
  }
#include "ebb/kernels/cuda/kernels.inc"

#define EBB_UNARY(name, Functor)                                \
  template <>                                                   \
  Status map<functors::Functor>(const KernelContext& context) { \
    return loaded().map_##Functor(context);                     \
  }
#define EBB_BINARY(name, Functor)                               \
  template <>                                                   \
  Status zip<functors::Functor>(const KernelContext& context) { \
    return loaded().zip_##Functor(context);                     \
  }
#define EBB_PAIR(name, Functor) EBB_BINARY(name, Functor)
#include "ebb/core/kernels/functors/families.inc"

}  // namespace ebb::cuda
