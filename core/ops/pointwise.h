// Everything that works element by element. A file that calls only some of it includes only their
// family, and is not compiled again when another family grows.
#pragma once
#include "ebb/core/ops/activations.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/elementary.h"
#include "ebb/core/ops/extremes.h"
#include "ebb/core/ops/powers.h"
#include "ebb/core/ops/rounding.h"
#include "ebb/core/ops/trigonometry.h"
