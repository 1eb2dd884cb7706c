#pragma once
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ebb/core/data/csv_options.h"
#include "ebb/core/random/random.h"
#include "ebb/core/tensor/tensor.h"

namespace ebb {

struct MapOptions {
  std::int64_t batch = 1024;  // samples at a time
};

// Samples on the host: one or more tensors, the fields, with the same leading dimension. Mostly
// two: inputs and targets. A handle; its values do not change. Everything that is wrong is thrown
// with the caller's line.
class DataSet {
 public:
  // inputs [n, ...], targets [n, ...]. Throws ShapeError where the leading dimensions differ, Error
  // for tensors that are not on the CPU.
  DataSet(Tensor inputs, Tensor targets, CallSite site = CallSite::here());
  // Of any number of fields, at least one: DataSet::of({tokens, labels, mask}). Throws likewise.
  static DataSet of(const Tensors& fields, CallSite site = CallSite::here());
  // Of the fields of samples sample(0) to sample(count - 1), each without the leading dimension:
  // [3, 8, 8] becomes [count, 3, 8, 8]. Throws Error for a count below 1, ShapeError for samples
  // that differ in shape or dtype, and what the function throws.
  static DataSet generate(std::int64_t count, const std::function<Tensors(std::int64_t)>& sample,
                          CallSite site = CallSite::here());
  // A CSV: the label column as i32 targets [n], all others as f32 inputs [n, columns], or what the
  // options say; load_csv gives the names of the columns too. Throws FileError with file, line and
  // column for what is missing or not a number.
  static DataSet csv(const std::string& file, const DataSetCsvOptions& options,
                     CallSite site = CallSite::here());
  // MNIST's IDX files: images u8 [n, rows, columns] as f32 [n, rows * columns] in 0..255, labels u8
  // as i32 [n]. Throws FileError.
  static DataSet idx(const std::string& images, const std::string& labels,
                     CallSite site = CallSite::here());

  std::int64_t size() const { return fields_.front().shape()[0]; }
  const std::vector<Tensor>& fields() const noexcept { return fields_; }
  const Tensor& inputs() const noexcept { return fields_.front(); }
  // The second field. Throws Error where there is none.
  const Tensor& targets(CallSite site = CallSite::here()) const;

  // {the rest, a random `fraction` of the samples}; both in their original order.
  std::pair<DataSet, DataSet> split(double fraction, Seed seed,
                                    CallSite site = CallSite::here()) const;
  // A copy of the samples of these numbers, in this order. Throws Error for one that is not there.
  DataSet subset(std::span<const std::int64_t> samples, CallSite site = CallSite::here()) const;
  // A copy in a random order. A loader shuffles by itself, anew in each pass, without a copy.
  DataSet shuffled(Seed seed, CallSite site = CallSite::here()) const;
  // The first `count` samples, and all but those: views of this one's memory. All, and none, where
  // there are fewer. Throws Error for a negative count.
  DataSet take(std::int64_t count, CallSite site = CallSite::here()) const;
  DataSet skip(std::int64_t count, CallSite site = CallSite::here()) const;
  // A copy with those of `others` behind its own. Throws ShapeError where the fields differ in
  // number, shape of a sample or dtype.
  DataSet concatenated(std::span<const DataSet> others, CallSite site = CallSite::here()) const;
  DataSet concatenated(const DataSet& other, CallSite site = CallSite::here()) const {
    return concatenated(std::span(&other, 1), site);
  }
  // A copy of what `function` makes of the fields, some samples at a time: as many samples, of any
  // fields. Computed once, without a history; DataLoaderOptions::transform does so for each batch
  // of each pass. Throws ShapeError for another number of samples, or parts that differ.
  DataSet mapped(const std::function<Tensors(const Tensors&)>& function,
                 const MapOptions& options = {}, CallSite site = CallSite::here()) const;

  // A copy whose inputs are multiplied by `factor`.
  DataSet scaled(double factor, CallSite site = CallSite::here()) const;
  // A copy whose inputs have mean 0 and deviation 1 by column, as measured on `reference` (columns
  // that are constant there are only shifted).
  DataSet standardized(const DataSet& reference, CallSite site = CallSite::here()) const;

 private:
  explicit DataSet(std::vector<Tensor> fields);
  DataSet with_inputs(Tensor inputs) const;

  std::vector<Tensor> fields_;
};

}  // namespace ebb
