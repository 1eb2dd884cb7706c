#pragma once
#include "ebb/core/ops/index.h"
#include "ebb/core/parameters/parameters.h"

namespace ebb::models {

// Looks up a row of a table for each index. Parameter "weight" [rows, features] starts normal with
// deviation 1.
class Embedding {
 public:
  // Throws Error for a size below 1, or a name that `parameters` has already.
  Embedding(const Parameters& parameters, std::int64_t rows, std::int64_t features,
            CallSite site = CallSite::here());

  // The table, for a head that shares it: matmul(x, embedding.weight(), {.transpose_b = true}),
  // which copies nothing.
  const Tensor& weight() const noexcept { return weight_; }

  // indices [...] (i32, i64) to [..., features]; as embedding(). Throws ShapeError.
  Tensor operator()(const Tensor& indices, CallSite site = CallSite::here()) const;

 private:
  Tensor weight_;
};

}  // namespace ebb::models
