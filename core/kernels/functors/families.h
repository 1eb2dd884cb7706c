// The functors of every family.
#pragma once
#include "ebb/core/kernels/functors/activations.h"
#include "ebb/core/kernels/functors/arithmetic.h"
#include "ebb/core/kernels/functors/elementary.h"
#include "ebb/core/kernels/functors/extremes.h"
#include "ebb/core/kernels/functors/losses.h"
#include "ebb/core/kernels/functors/powers.h"
#include "ebb/core/kernels/functors/rounding.h"
#include "ebb/core/kernels/functors/trigonometry.h"
