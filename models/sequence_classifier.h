#pragma once
#include <optional>

#include "ebb/models/dense.h"
#include "ebb/models/embedding.h"
#include "ebb/models/lstm.h"

namespace ebb::models {

// What becomes of a sequence's steps.
enum class Pooling {
  last,  // what the last layer holds after the last step, backwards after the first
  mean,  // the mean over the steps
  max    // the largest of each feature over the steps; -1, below which none is, where a length is 0
};

struct SequenceClassifierOptions {
  // Sequences are codes below this, for each of which an Embedding has `in` features; 0: they are
  // features themselves.
  std::int64_t vocabulary = 0;
  LstmOptions lstm = {};
  Pooling pooling = Pooling::last;
  double dropout = 0;  // of what the steps have become, in Phase::training
};

struct SequenceClassifierCall {
  Phase phase = Phase::inference;
  Tensor lengths = {};  // of each sequence, as in LstmCall; all steps where it holds nothing
};

// Gives each class a score for a whole sequence: an Embedding ("embedding") where there are codes,
// an Lstm ("lstm"), its steps pooled, and a Dense head ("head"). Its loss is softmax_cross_entropy.
class SequenceClassifier {
 public:
  // `in` features per step. Throws as Embedding, Lstm and Dense, and Error for a dropout outside
  // [0, 1) or a vocabulary below 0.
  SequenceClassifier(const Parameters& parameters, std::int64_t in, std::int64_t classes,
                     const SequenceClassifierOptions& options = {},
                     CallSite site = CallSite::here());

  // x [batch, time, in], or codes [batch, time] of integers, to scores [batch, classes]. Steps
  // behind a sequence's length change nothing; a length that cannot be makes its scores NaN. Throws
  // ShapeError, also for Pooling::max of an x without steps.
  Tensor operator()(const Tensor& x, const SequenceClassifierCall& call = {},
                    CallSite site = CallSite::here()) const;

 private:
  // While an entry of the constructor's lives.
  SequenceClassifier(const ebb::detail::Declaring&, const Parameters& parameters, std::int64_t in,
                     std::int64_t classes, const SequenceClassifierOptions& options);

  std::optional<Embedding> embedding_;
  Lstm lstm_;
  Dense head_;
  Pooling pooling_;
  double dropout_;
  std::int64_t directions_;
};

}  // namespace ebb::models
