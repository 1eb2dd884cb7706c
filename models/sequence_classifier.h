#pragma once
#include <optional>

#include "ebb/models/dense.h"
#include "ebb/models/embedding.h"
#include "ebb/models/lstm.h"

namespace ebb::models {

// Reduces a sequence's steps to one vector.
enum class Pooling {
  last,  // state of the last layer after the last step; backwards, after the first
  mean,  // the mean over the steps
  max    // largest of each feature over the steps; for a length of 0 -1, the least possible
};

struct SequenceClassifierOptions {
  // If above 0, sequences are codes below it, and an Embedding has `in` features for each. 0:
  // sequences are features themselves.
  std::int64_t vocabulary = 0;
  LstmOptions lstm = {};
  Pooling pooling = Pooling::last;
  double dropout = 0;  // of the pooled vector, in Phase::training
};

struct SequenceClassifierCall {
  Phase phase = Phase::inference;
  Tensor lengths = {};  // steps of each sequence, as in LstmCall; all if undefined
};

// Scores each class for a whole sequence: an Embedding ("embedding") where there are codes, an Lstm
// ("lstm"), pooling over its steps, and a Dense head ("head"). Its loss is softmax_cross_entropy.
class SequenceClassifier {
 public:
  // `in` features per step. Throws as Embedding, Lstm and Dense, and Error for a dropout outside
  // [0, 1) or a vocabulary below 0.
  SequenceClassifier(const Parameters& parameters, std::int64_t in, std::int64_t classes,
                     const SequenceClassifierOptions& options = {},
                     CallSite site = CallSite::here());

  // x [batch, time, in], or codes [batch, time] of integers, to scores [batch, classes]. Steps
  // behind a sequence's length change nothing; an impossible length makes its scores NaN. Throws
  // ShapeError, also for Pooling::max of an x without steps.
  Tensor operator()(const Tensor& x, const SequenceClassifierCall& call = {},
                    CallSite site = CallSite::here()) const;

 private:
  // Runs while the public constructor's Declaring lives.
  SequenceClassifier(const ebb::detail::Declaring&, const Parameters& parameters, std::int64_t in,
                     std::int64_t classes, const SequenceClassifierOptions& options);

  unsigned layer_;
  std::optional<Embedding> embedding_;
  Lstm lstm_;
  Dense head_;
  Pooling pooling_;
  double dropout_;
  std::int64_t directions_;
};

}  // namespace ebb::models
