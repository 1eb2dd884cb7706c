// All pointwise operators. A file that needs a few families includes only theirs, and is not
// compiled again when another grows.
#pragma once
#include "ebb/core/ops/activations.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/extremes.h"
#include "ebb/core/ops/powers.h"
#include "ebb/core/ops/rounding.h"
#include "ebb/core/ops/trigonometry.h"
