// Pointwise arithmetic, written once: what a functor is given is a scalar, or in kernels/cpu a
// Block of scalars, whose functions are found by argument (hence `using std::exp;`). X{} is zero.
//
// A functor of IEEE's exact operations alone says `exact = true`: scalars give the same bits as
// blocks, so that compilers may vectorise loops of it. The others work on whole blocks.
#pragma once
#include "ebb/core/base/host_device.h"
