#pragma once
#include <span>

#include "ebb/core/ops/attention.h"
#include "ebb/core/ops/collective.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/conv.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/gru.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/linear.h"
#include "ebb/core/ops/loss.h"
#include "ebb/core/ops/lstm.h"
#include "ebb/core/ops/memory_figures.h"
#include "ebb/core/ops/norm.h"
#include "ebb/core/ops/order.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/pool.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/scan.h"
#include "ebb/core/ops/sequence.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/softmax.h"
#include "ebb/core/ops/statistics.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/ops/where.h"

namespace ebb {

// Every operator of core, whose declarations this header has; the optimizers' are in
// optim/all_operators.h. The tests loop over them. A new operator is one entry here (a pointwise
// one: in the list of its family, core/kernels/functors/*.inc), beside its definition, its kernels
// and its sample in tests/ops/.
std::span<const OpDef* const> all_operators() noexcept;

}  // namespace ebb
