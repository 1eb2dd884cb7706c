// Shapes.
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {

EBB_SAME("x[1], x[-1]", x[0][1], x[0][-1]);
EBB_SAME("x[1:3], x[:-1]", slice(x[0], 1, 3), slice(x[0], 0, -1));
EBB_SAME("x[:, 1:], x[..., ::2]", slice(x[0], 1, kEnd, {.axis = 1}),
         slice(x[0], 0, kEnd, {.axis = -1, .step = 2}));
EBB_SAME("x[::-1]", slice(x[0], -1, kEnd, {.step = -1}));
EBB_GIVES("x[..., None], x.unsqueeze(-1), np.expand_dims(x, -1)") {
  return Tensors{unsqueeze(x[0], -1)};
}
EBB_SAME("x.squeeze(1), np.squeeze(x, 1)", squeeze(x[0], 1));
EBB_SAME("x.reshape(3, -1), x.view(3, -1)", reshape(x[0], {3, -1}));
EBB_SAME("torch.flatten(x)", reshape(x[0], {-1}));
EBB_SAME("nn.Flatten()", flatten(x[0]));
EBB_SAME("x.permute(2, 0, 1), np.transpose(x, (2, 0, 1))", permute(x[0], {2, 0, 1}));
EBB_SAME("x.transpose(0, 1), np.swapaxes(x, 0, 1)", transpose(x[0], 0, 1));
EBB_SAME("x.mT", transpose(x[0]));
EBB_SAME("x.T, np.transpose(x)", permute(x[0], {2, 1, 0}), transpose(x[0], 0, 2));
EBB_SAME("torch.cat([x, y], 1), np.concatenate([x, y], 1)", concat({x[0], x[1]}, 1));
EBB_SAME("torch.stack([x, y], -1), np.stack([x, y], -1)", stack({x[0], x[1]}, -1));
EBB_SAME("torch.split(x, [1, 3], -1)", split(x[0], {1, 3}, -1));
EBB_SAME("torch.split(x, 2, -1)", split(x[0], {2, 2}, -1));
EBB_SAME("torch.chunk(x, 2, -1), np.split(x, 2, -1)", chunk(x[0], 2, -1));
EBB_SAME("x.expand(2, -1), np.broadcast_to(x, (2, 3))", broadcast_to(x[0], {2, -1}));
EBB_SAME("torch.tile(x, (1, 2)), x.repeat(1, 2), np.tile(x, (1, 2))", tile(x[0], 2, 1));
EBB_SAME("torch.repeat_interleave(x, 2, 1), np.repeat(x, 2, 1)", repeat(x[0], 2, 1));
EBB_SAME("np.repeat(x, 2)", repeat(reshape(x[0], {-1}), 2));
EBB_SAME("F.pad(x, (1, 2, 0, 3), value=v)", pad(x[0], {{0, 3}, {1, 2}}, 0.5));
EBB_SAME("np.pad(x, ((0, 3), (1, 2)))", pad(x[0], {{0, 3}, {1, 2}}));
EBB_SAME("torch.flip(x, [0, 2]), np.flip(x, (0, 2))", flip(x[0], {0, 2}));
EBB_SAME("np.flip(x)", flip(x[0]));
EBB_SAME("torch.roll(x, 1, 0), np.roll(x, 1, 0)", roll(x[0], 1, 0));
EBB_SAME("x.shape, x.ndim, x.size", Tensor::from(x[0].shape().dims()),
         Tensor::full({}, x[0].rank(), DType::i64),
         Tensor::full({}, static_cast<double>(x[0].elements()), DType::i64));

}  // namespace ebb::tests::parity
