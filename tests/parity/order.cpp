// Sorting and choosing by order.
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {
namespace {

Tensors both(const TopK& top) { return {top.values, top.indices}; }

}  // namespace

EBB_SAME("torch.sort(x), np.sort(x)", sort(x[0]));
EBB_SAME("torch.sort(x, 0, descending=True)", sort(x[0], {.axis = 0, .descending = true}),
         argsort(x[0], {.axis = 0, .descending = true}));
EBB_SAME("torch.sort(x, stable=True) with ties", sort(x[0]), argsort(x[0]));
EBB_SAME("torch.sort(x, stable=True, descending=True) with ties", sort(x[0], {.descending = true}),
         argsort(x[0], {.descending = true}));
EBB_SAME("the order of NaN, np.sort([nan, ..])", sort(x[0]), sort(x[0], {.descending = true}));
EBB_SAME("torch.argsort(x, 0), np.argsort(x, 0)", argsort(x[0], {.axis = 0}));
EBB_SAME("torch.topk(x, 2)", both(topk(x[0], 2)));
EBB_SAME("torch.topk(x, 1, 0, largest=False)", both(topk(x[0], 1, {.axis = 0, .largest = false})));
EBB_SAME("torch.median(x, 1)", select(sort(x[0]), 1, (x[0].size(1) - 1) / 2));
EBB_SAME("torch.kthvalue(x, 2)", select(sort(x[0]), -1, 2 - 1));
EBB_SAME("np.argsort(np.argsort(x))", argsort(argsort(x[0])));

}  // namespace ebb::tests::parity
