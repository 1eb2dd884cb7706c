// Convolutions, pools, normalisations.
#include "ebb/tests/parity/row.h"

namespace ebb::tests::parity {

EBB_SAME("F.conv2d(x, w, b)", conv2d(x[0], x[1], x[2]));
EBB_SAME("F.conv2d(x, w, stride=(2, 1), padding=(1, 2), dilation=2, groups=2)",
         conv2d(x[0], x[1], {.stride = {2, 1}, .padding = {1, 2}, .dilation = 2, .groups = 2}));
EBB_SAME("F.conv2d(x, w, padding='same')",
         conv2d(pad(x[0], {{0, 0}, {0, 0}, {0, 1}, {1, 1}}), x[1]));
EBB_SAME("F.conv1d(x, w, b, padding=1)", conv1d(x[0], x[1], x[2], {.padding = 1}));
EBB_SAME("F.conv_transpose2d(x, w, b)", conv_transpose2d(x[0], x[1], x[2]));
EBB_SAME("F.conv_transpose2d(x, w, stride=(2, 3), padding=1, output_padding=(1, 2), groups=2)",
         conv_transpose2d(x[0], x[1],
                          {.stride = {2, 3}, .padding = 1, .output_padding = {1, 2}, .groups = 2}));
EBB_SAME("F.conv_transpose2d(x, w, output_padding=2, dilation=3)",
         conv_transpose2d(x[0], x[1], {.output_padding = 2, .dilation = 3}));
EBB_SAME("F.conv_transpose1d(x, w, b, stride=2, padding=1)",
         conv_transpose1d(x[0], x[1], x[2], {.stride = 2, .padding = 1}));
EBB_SAME("F.max_pool2d(x, 2)", max_pool2d(x[0]));
EBB_SAME("F.max_pool2d(x, 3, 2, padding=1)",
         max_pool2d(x[0], {.kernel = 3, .stride = 2, .padding = 1}));
EBB_SAME("F.max_pool1d(x, 2, 1), F.avg_pool1d(x, 2, 1)", max_pool1d(x[0], {.stride = 1}),
         avg_pool1d(x[0], {.stride = 1}));
EBB_SAME("F.avg_pool2d(x, 3, 2, padding=1)",
         avg_pool2d(x[0], {.kernel = 3, .stride = 2, .padding = 1}));
EBB_SAME("F.avg_pool2d(x, 3, 2, padding=1, count_include_pad=False)",
         avg_pool2d(x[0], {.kernel = 3, .stride = 2, .padding = 1, .count_include_pad = false}));
EBB_SAME("F.adaptive_avg_pool2d(x, 1)", mean(x[0], {.axes = {-2, -1}, .keep = true}));
EBB_SAME("F.adaptive_max_pool2d(x, 1)", max(x[0], {.axes = {-2, -1}, .keep = true}));
EBB_SAME("F.interpolate(x, scale_factor=2)", repeat(repeat(x[0], 2, -2), 2, -1));
EBB_SAME("F.pixel_shuffle(x, 2)",
         reshape(permute(reshape(x[0], {1, 2, 2, 2, 2, 3}), {0, 1, 4, 2, 5, 3}), {1, 2, 4, 6}));

EBB_SAME("F.layer_norm(x, (3,), w, b)", layer_norm(x[0], x[1], x[2]));
EBB_SAME("F.layer_norm(x, (4, 3))", layer_norm(x[0], {.axes = 2}));
EBB_SAME("F.rms_norm(x, (3,), w)", rms_norm(x[0], x[1], {.epsilon = 0x1p-52}));
EBB_SAME("F.rms_norm(x, (3,), w, eps=1e-5)", rms_norm(x[0], x[1]));
EBB_SAME("F.group_norm(x, 2, w, b)", group_norm(x[0], 2, x[1], x[2]));
EBB_SAME("F.instance_norm(x)",
         group_norm(x[0], 4, ones({4}, {.dtype = DType::f64}), Tensor::zeros({4}, DType::f64)));
EBB_GIVES("F.batch_norm(x, m, v, w, b, training=True)") {
  const Tensor mean = Tensor::full({4}, 0.5, DType::f64);
  const Tensor variance = Tensor::full({4}, 2, DType::f64);
  const Tensor y = batch_norm(x[0], x[1], x[2], mean, variance, {.phase = Phase::training});
  return Tensors{y, mean, variance};
}
EBB_SAME("F.batch_norm(x, m, v, w, b)", batch_norm(x[0], x[1], x[2], x[3], x[4]));

}  // namespace ebb::tests::parity
