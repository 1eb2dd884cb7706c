#include "ebb/tests/ops/samples.h"

namespace ebb::tests {

std::vector<Sample> all_samples(DType dtype) {
  std::vector<Sample> samples;
  add_pointwise_samples(samples);
  add_copy_samples(samples);
  add_reduce_samples(samples);
  add_linear_samples(samples);
  add_loss_samples(samples);
  add_random_samples(samples, dtype);
  add_lstm_samples(samples);
  add_shape_samples(samples);
  add_update_samples(samples, dtype);
  return samples;
}

}  // namespace ebb::tests
