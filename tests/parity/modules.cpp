// Modules.
#include "ebb/tests/parity/set.h"

namespace ebb::tests::parity {

EBB_SAME("nn.Linear(3, 2)",
         layer_of<models::Dense>(x[0], {{"weight", transpose(x[1])}, {"bias", x[2]}}, 3, 2));
EBB_SAME("nn.Conv2d(2, 4, 3, padding=1, groups=2)",
         layer_of<models::Conv2d>(x[0], {{"weight", x[1]}, {"bias", x[2]}}, 2, 4,
                                  models::Conv2dOptions{.kernel = 3, .padding = 1, .groups = 2}));
EBB_SAME("nn.ConvTranspose2d(2, 4, 3, stride=2, padding=1, groups=2)",
         layer_of<models::ConvTranspose2d>(
             x[0], {{"weight", x[1]}, {"bias", x[2]}}, 2, 4,
             models::ConvTranspose2dOptions{.kernel = 3, .stride = 2, .padding = 1, .groups = 2}));
EBB_SAME("nn.Embedding(5, 3)", layer_of<models::Embedding>(x[0], {{"weight", x[1]}}, 5, 3));
EBB_GIVES("F.linear(F.embedding(i, w), w)") {
  const Parameters params = f64();
  models::Embedding(params, 5, 3);
  const models::Embedding table(params.with({x[1]}), 5, 3);
  return Tensors{matmul(table(x[0]), table.weight(), {.transpose_b = true})};
}
EBB_SAME("nn.LayerNorm(4)",
         layer_of<models::LayerNorm>(x[0], {{"scale", x[1]}, {"shift", x[2]}}, 4));
EBB_SAME("nn.GroupNorm(2, 4)",
         layer_of<models::GroupNorm>(x[0], {{"scale", x[1]}, {"shift", x[2]}}, 2, 4));
EBB_GIVES("nn.BatchNorm2d(2), train() and eval()") {
  const Parameters params = f64();
  const models::BatchNorm layer(params, 2);
  set(params, {{"scale", x[1]}, {"shift", x[2]}});
  layer(x[0], Phase::training);
  return Tensors{layer(x[0], Phase::inference).detach(), params["running_mean"],
                 params["running_variance"]};
}
EBB_SAME("nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))",
         layer_of<models::Mlp>(x[0],
                               {{"0.weight", transpose(x[1])},
                                {"0.bias", x[2]},
                                {"1.weight", transpose(x[3])},
                                {"1.bias", x[4]}},
                               std::vector<std::int64_t>{3, 4, 2}));

}  // namespace ebb::tests::parity
