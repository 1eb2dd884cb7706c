// What is learned, from what, by which model, and how well.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "ebb/core/data/data_set.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/examples/common/options.h"

namespace examples {

// x to scores, on concrete and symbolic tensors alike.
using Model = std::function<ebb::Tensor(const ebb::Tensor& x, ebb::Phase phase)>;

// A forecast that takes no model, for comparison.
struct Baseline {
  std::string name;
  double metric = 0;
};

class Problem {
 public:
  Problem(ebb::DataSet training, ebb::DataSet held_out)
      : training_(std::move(training)), held_out_(std::move(held_out)) {}
  virtual ~Problem() = default;

  const ebb::DataSet& training() const noexcept { return training_; }
  const ebb::DataSet& held_out() const noexcept { return held_out_; }

  virtual std::string metric() const = 0;    // "accuracy"
  virtual std::string describe() const = 0;  // one line
  virtual Model build(const ebb::Parameters& parameters) const = 0;
  // The mean over the rows, a scalar.
  virtual ebb::Tensor loss(const ebb::Tensor& scores, const ebb::Tensor& target) const = 0;
  // The metric of a batch on the host, summed over its rows; and of such a sum over so many rows.
  virtual double add_up(const ebb::Tensor& scores, const ebb::Tensor& target) const = 0;
  virtual double summarize(double sum, std::int64_t rows) const = 0;
  virtual std::vector<Baseline> baselines() const { return {}; }

 private:
  ebb::DataSet training_, held_out_;
};

// The UCI 8x8 digits, or whatever --data names, by models::Classifier; a random fifth is held out.
std::unique_ptr<Problem> classification(const Options& options);
// The next monthly number of sunspots from the `length` before it, by models::Forecaster; the last
// fifth of the series is held out.
std::unique_ptr<Problem> forecasting(const Options& options);

std::unique_ptr<Problem> make_problem(const Options& options);

// The name of the last column of a CSV, which is what the models learn.
std::string last_column(const std::string& file);

}  // namespace examples
