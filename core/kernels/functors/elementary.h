#pragma once
#include <cmath>

#include "ebb/core/kernels/functors/host_device.h"

namespace ebb::functors {

EBB_FUNCTOR(Exp, exp)
EBB_FUNCTOR(Log, log)
EBB_FUNCTOR(Tanh, tanh)

}  // namespace ebb::functors
