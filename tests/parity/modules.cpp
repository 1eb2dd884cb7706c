// Modules.
#include "ebb/tests/parity/set.h"

namespace ebb::tests::parity {

EBB_GIVES("nn.Linear(3, 2)") {
  const Parameters params = f64();
  const models::Dense layer(params, 3, 2);
  set(params, {{"weight", transpose(x[1])}, {"bias", x[2]}});
  return Tensors{layer(x[0])};
}
EBB_GIVES("nn.Conv2d(2, 4, 3, padding=1, groups=2)") {
  const Parameters params = f64();
  const models::Conv2d layer(params, 2, 4, {.kernel = 3, .padding = 1, .groups = 2});
  set(params, {{"weight", x[1]}, {"bias", x[2]}});
  return Tensors{layer(x[0])};
}
EBB_GIVES("nn.ConvTranspose2d(2, 4, 3, stride=2, padding=1, groups=2)") {
  const Parameters params = f64();
  const models::ConvTranspose2d layer(params, 2, 4,
                                      {.kernel = 3, .stride = 2, .padding = 1, .groups = 2});
  set(params, {{"weight", x[1]}, {"bias", x[2]}});
  return Tensors{layer(x[0])};
}
EBB_GIVES("nn.Embedding(5, 3)") {
  const Parameters params = f64();
  const models::Embedding layer(params, 5, 3);
  set(params, {{"weight", x[1]}});
  return Tensors{layer(x[0])};
}
EBB_GIVES("nn.LayerNorm(4)") {
  const Parameters params = f64();
  const models::LayerNorm layer(params, 4);
  set(params, {{"scale", x[1]}, {"shift", x[2]}});
  return Tensors{layer(x[0])};
}
EBB_GIVES("nn.GroupNorm(2, 4)") {
  const Parameters params = f64();
  const models::GroupNorm layer(params, 2, 4);
  set(params, {{"scale", x[1]}, {"shift", x[2]}});
  return Tensors{layer(x[0])};
}
EBB_GIVES("nn.BatchNorm2d(2), train() and eval()") {
  const Parameters params = f64();
  const models::BatchNorm layer(params, 2);
  set(params, {{"scale", x[1]}, {"shift", x[2]}});
  layer(x[0], Phase::training);
  return Tensors{layer(x[0], Phase::inference).detach(), params["running_mean"],
                 params["running_variance"]};
}
EBB_GIVES("nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))") {
  const Parameters params = f64();
  const models::Mlp model(params, {3, 4, 2});
  set(params, {{"0.weight", transpose(x[1])},
               {"0.bias", x[2]},
               {"1.weight", transpose(x[3])},
               {"1.bias", x[4]}});
  return Tensors{model(x[0])};
}

}  // namespace ebb::tests::parity
