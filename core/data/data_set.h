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

// A value is standardized to (value - mean) / deviation.
struct Scale {
  double mean = 0;
  double deviation = 1;  // of the whole population; 1 if all values are equal
};

struct MapOptions {
  std::int64_t batch = 1024;  // samples at a time
};

// Samples on the host: one or more tensors, the fields, with the same leading dimension. Usually
// two: inputs and targets. A handle; its values do not change. Errors carry the caller's line.
class DataSet {
 public:
  // inputs [n, ...], targets [n, ...]. Throws ShapeError where the leading dimensions differ, Error
  // for tensors that are not on the CPU.
  DataSet(Tensor inputs, Tensor targets, CallSite site = CallSite::here());
  // Any number of fields, at least one: DataSet::of({tokens, labels, mask}). Throws likewise.
  static DataSet of(const Tensors& fields, CallSite site = CallSite::here());
  // Collects sample(0) to sample(count - 1), whose fields have no leading dimension: [3, 8, 8]
  // becomes [count, 3, 8, 8]. Throws Error for a count below 1 and ShapeError for samples that
  // differ in shape or dtype; exceptions of `sample` pass.
  static DataSet generate(std::int64_t count, const std::function<Tensors(std::int64_t)>& sample,
                          CallSite site = CallSite::here());
  // Reads a CSV: the label column as i32 targets [n], all others as f32 inputs [n, columns], unless
  // the options say otherwise. load_csv also gives the names of the columns. Throws FileError with
  // file, line and column for a missing value or text in place of a number.
  static DataSet csv(const std::string& file, const DataSetCsvOptions& options,
                     CallSite site = CallSite::here());
  // MNIST's IDX files: images u8 [n, rows, columns] as f32 [n, rows * columns] in 0..255, labels u8
  // as i32 [n]. Throws FileError.
  static DataSet idx(const std::string& images, const std::string& labels,
                     CallSite site = CallSite::here());

  std::int64_t size() const { return fields_.front().shape()[0]; }
  const std::vector<Tensor>& fields() const noexcept { return fields_; }
  const Tensor& inputs() const noexcept { return fields_.front(); }
  // The second field. Throws Error if there is none.
  const Tensor& targets(CallSite site = CallSite::here()) const;

  // {the rest, a random `fraction` of the samples}; both in their original order.
  std::pair<DataSet, DataSet> split(double fraction, Seed seed,
                                    CallSite site = CallSite::here()) const;
  // A copy of the samples with these numbers, in this order. Throws Error for a number out of
  // range.
  DataSet subset(std::span<const std::int64_t> samples, CallSite site = CallSite::here()) const;
  // A copy in random order. A loader shuffles by itself, anew in each pass, without a copy.
  DataSet shuffled(Seed seed, CallSite site = CallSite::here()) const;
  // take: the first `count` samples; skip: all others. Views of this set's memory. With fewer
  // samples, take gives all and skip none. Throws Error for a negative count.
  DataSet take(std::int64_t count, CallSite site = CallSite::here()) const;
  DataSet skip(std::int64_t count, CallSite site = CallSite::here()) const;
  // A copy followed by the samples of `others`. Throws ShapeError if the fields differ in number,
  // shape of a sample or dtype.
  DataSet concatenated(std::span<const DataSet> others, CallSite site = CallSite::here()) const;
  DataSet concatenated(const DataSet& other, CallSite site = CallSite::here()) const {
    return concatenated(std::span(&other, 1), site);
  }
  // Applies `function` to the fields of some samples at a time, and copies the results; it must
  // return as many samples, of any fields. Computed once, without a history;
  // DataLoaderOptions::transform works on each batch of each pass. Throws ShapeError for another
  // number of samples, or parts that differ.
  DataSet mapped(const std::function<Tensors(const Tensors&)>& function,
                 const MapOptions& options = {}, CallSite site = CallSite::here()) const;

  // A copy whose inputs are multiplied by `factor`.
  DataSet scaled(double factor, CallSite site = CallSite::here()) const;
  // A copy whose inputs are standardized by column with the mean and deviation of `reference`
  // (columns that are constant there are only shifted).
  DataSet standardized(const DataSet& reference, CallSite site = CallSite::here()) const;

 private:
  explicit DataSet(std::vector<Tensor> fields);
  DataSet with_inputs(Tensor inputs) const;

  std::vector<Tensor> fields_;
};

}  // namespace ebb
