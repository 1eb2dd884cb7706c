#include "ebb/models/sequence_classifier.h"

#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/extremes.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/order.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/scan.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/where.h"
#include "ebb/core/parameters/declaring.h"
#include "ebb/models/detail/layers.h"

namespace ebb::models {

namespace {

std::optional<Embedding> embedding_of(const Parameters& parameters, std::int64_t vocabulary,
                                      std::int64_t features) {
  require_size("sequence_classifier", "vocabulary", vocabulary, 0);
  if (vocabulary == 0) return {};
  return Embedding(parameters.scope("embedding"), vocabulary, features);
}

// The mean over the steps of [batch, time, features] that count; the steps behind them are zeros.
Tensor mean_of_steps(const Tensor& sequence, const Tensor& lengths) {
  if (!lengths.defined()) return mean(sequence, 1);
  // In f32: neither a sum nor a count of 16 bits would hold many steps.
  const DType dtype = sequence.dtype(), wide = is_half(dtype) ? DType::f32 : dtype;
  const Tensor counts = unsqueeze(cast(maximum(lengths, 1), wide), 1);
  return cast(sum(cast(sequence, wide), 1) / counts, dtype);
}

Tensor max_of_steps(const Tensor& sequence, const Tensor& lengths) {
  if (!lengths.defined()) return max(sequence, 1);
  // Numbers the steps from 1, [batch, time]; sizes may be open.
  const Tensor ones = cast(ones_like(select(sequence, 2, 0)), DType::i64);
  const Tensor length = unsqueeze(cast(lengths, DType::i64), 1);
  // A length below 0 masks nothing, so its NaN steps stay NaN.
  const Tensor is_behind = (cumsum(ones, 1) > length) & (length >= 0);
  return max(masked_fill(sequence, unsqueeze(is_behind, 2), -1), 1);
}

// The final states of the last layer's directions, side by side.
Tensor last_states(const Tensor& hidden, std::int64_t directions) {
  if (directions == 1) return select(hidden, 0, -1);
  return concat({select(hidden, 0, -2), select(hidden, 0, -1)}, 1);
}

}  // namespace

SequenceClassifier::SequenceClassifier(const Parameters& parameters, std::int64_t in,
                                       std::int64_t classes,
                                       const SequenceClassifierOptions& options, CallSite site)
    : SequenceClassifier(ebb::detail::Declaring(parameters, site), parameters, in, classes,
                         options) {}

SequenceClassifier::SequenceClassifier(const ebb::detail::Declaring&, const Parameters& parameters,
                                       std::int64_t in, std::int64_t classes,
                                       const SequenceClassifierOptions& options)
    : layer_(parameters.layer()),
      embedding_(embedding_of(parameters, options.vocabulary, in)),
      lstm_(parameters.scope("lstm"), in, options.lstm),
      head_(parameters.scope("head"), options.lstm.hidden * (options.lstm.bidirectional ? 2 : 1),
            classes),
      pooling_(options.pooling),
      dropout_(options.dropout),
      directions_(options.lstm.bidirectional ? 2 : 1) {
  if (!(dropout_ >= 0 && dropout_ < 1))
    ebb::detail::refuse("sequence_classifier",
                        "dropout = " + std::to_string(dropout_) + " is outside [0, 1)");
}

Tensor SequenceClassifier::operator()(const Tensor& x, const SequenceClassifierCall& call,
                                      CallSite site) const {
  const ebb::detail::CallScope at(site.in(layer_));
  const LstmOutput output = lstm_(embedding_ ? (*embedding_)(x) : x,
                                  LstmCall{.phase = call.phase, .lengths = call.lengths});
  Tensor pooled = pooling_ == Pooling::last   ? last_states(output.hidden, directions_)
                  : pooling_ == Pooling::mean ? mean_of_steps(output.sequence, call.lengths)
                                              : max_of_steps(output.sequence, call.lengths);
  return head_(dropout(pooled, dropout_, call.phase));
}

}  // namespace ebb::models
