// Matrix products and functions made of them.
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {

EBB_SAME("x @ y, torch.mm(x, y), np.matmul(x, y)", matmul(x[0], x[1]));
EBB_SAME("x @ y with batches, torch.bmm(x, y)", matmul(x[0], x[1]));
EBB_SAME("x @ y where leading axes broadcast", matmul(x[0], x[1]));
EBB_SAME("torch.mv(x, v), x @ v, v @ x", matmul(x[0], x[1]), matmul(x[2], x[0]));
EBB_SAME("torch.dot(v, w), np.dot(v, w)", matmul(x[0], x[1]));
EBB_SAME("np.dot(x, y) of more axes",
         permute(matmul(unsqueeze(x[0], 1), unsqueeze(x[1], 0)), {0, 2, 1, 3}));
EBB_SAME("torch.outer(v, w), np.outer(v, w)", unsqueeze(x[0], 1) * x[1]);
EBB_SAME("torch.einsum('bij,bkj->bik', x, y)", matmul(x[0], x[1], {.transpose_b = true}));
EBB_SAME("torch.addmm(b, x, y)", dense(x[1], x[2], x[0]));
EBB_SAME("F.linear(x, w, b)", dense(x[0], transpose(x[1]), x[2]));
EBB_SAME("torch.trace(x), np.trace(x)", sum(x[0] * eye(3, {.dtype = DType::f64})));
EBB_SAME("torch.diagonal(x), torch.diag(v)", sum(x[0] * eye(3, {.dtype = DType::f64}), 1),
         x[1] * eye(3, {.dtype = DType::f64}));
EBB_SAME("the product over no elements", matmul(x[0], x[1]));
EBB_SAME("F.cosine_similarity(x, y, dim=1)",
         sum(x[0] * x[1], 1) /
             (maximum(norm(x[0], {.axis = 1}), 1e-8) * maximum(norm(x[1], {.axis = 1}), 1e-8)));
EBB_SAME("F.normalize(x, dim=1)", x[0] / maximum(norm(x[0], {.axis = 1, .keep = true}), 1e-12));

}  // namespace ebb::tests::parity
