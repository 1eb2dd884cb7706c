#pragma once
#include <string>
#include <utility>

#include "ebb/core/random/random.h"
#include "ebb/core/tensor/tensor.h"

namespace ebb {

struct DataSetCsvOptions {
  std::string label;  // the column that becomes the target (i32); required
};

// Samples with targets, on the host: two tensors with the same leading dimension. A handle.
class DataSet {
 public:
  // inputs [n, ...], targets [n, ...]. Throws ShapeError where the leading dimensions differ, Error
  // for tensors that are not on the CPU.
  DataSet(Tensor inputs, Tensor targets, CallSite site = CallSite::here());
  // A CSV with a header: the label column as i32 targets [n], all others as f32 inputs [n,
  // columns]. Throws FileError with file, line and column for what is missing or not a number.
  static DataSet csv(const std::string& file, const DataSetCsvOptions& options,
                     CallSite site = CallSite::here());
  // MNIST's IDX files: images u8 [n, rows, columns] as f32 [n, rows * columns] in 0..255, labels u8
  // as i32 [n]. Throws FileError.
  static DataSet idx(const std::string& images, const std::string& labels,
                     CallSite site = CallSite::here());

  std::int64_t size() const { return inputs_.shape()[0]; }
  const Tensor& inputs() const noexcept { return inputs_; }
  const Tensor& targets() const noexcept { return targets_; }

  // {the rest, a random `fraction` of the samples}; both in their original order.
  std::pair<DataSet, DataSet> split(double fraction, Seed seed,
                                    CallSite site = CallSite::here()) const;
  // A copy whose inputs are multiplied by `factor`.
  DataSet scaled(double factor, CallSite site = CallSite::here()) const;
  // A copy whose inputs have mean 0 and deviation 1 by column, as measured on `reference` (columns
  // that are constant there are only shifted).
  DataSet standardized(const DataSet& reference, CallSite site = CallSite::here()) const;

 private:
  Tensor inputs_, targets_;
};

}  // namespace ebb
