// Kernels of the update rules in optim/kernels/rules.inc, and of accumulation.
#include "ebb/kernels/cuda/merged.h"
#include "ebb/optim/kernels/accumulator.h"
#include "ebb/optim/kernels/rules.h"

namespace ebb::cuda {
namespace {

// An update rule as merged kernels take it. Its arrays are p and slots, which are written, and g.
template <class Rule>
struct Update {
  static constexpr int kWritten = 1 + Rule::kSlots, kArrays = kWritten + 1;

  typename Rule::Attributes attributes;
  optim::UpdateScalars scalars;

  template <class T>
  struct Constants {
    typename Rule::template Constants<T> rule;
    optim::GradientAsGiven<T> given;
    bool as_given;
  };

  explicit Update(const KernelContext& context) noexcept
      : attributes(context.attribute<typename Rule::Attributes>()), scalars(context, kArrays) {}

  __device__ bool is_open() const { return scalars.is_open(); }

  template <class T>
  __device__ Constants<T> constants() const {
    const auto given = optim::gradient_as_given<T>(scalars, attributes.clip_value);
    return {
        Rule::template constants<T>(attributes, static_cast<double>(*scalars.step), *scalars.rate),
        given, given.is_unchanged()};
  }

  template <class T>
  __device__ static void update(const Constants<T>& c, T (&x)[kArrays]) {
    T written[kWritten];
    for (int k = 0; k < kWritten; ++k) written[k] = x[k];
    Rule::update(c.rule, written, c.as_given ? x[kWritten] : c.given(x[kWritten]));
    for (int k = 0; k < kWritten; ++k) x[k] = written[k];
  }
};

template <class Rule>
Status update_merged(std::span<const Launch> launches) noexcept {
  return run_merged(launches, [](const KernelContext& context) { return Update<Rule>(context); });
}

struct AddRows {
  static constexpr int kArrays = 2, kWritten = 1;  // sum; g

  const std::int64_t* rows;

  template <class T>
  struct Constants {
    T rows;
  };

  __device__ bool is_open() const { return *rows != 0; }  // the mean of nothing is NaN

  template <class T>
  __device__ Constants<T> constants() const {
    return {static_cast<T>(*rows)};
  }

  template <class T>
  __device__ static void update(const Constants<T>& c, T (&x)[kArrays]) {
    x[0] += c.rows * x[1];
  }
};

}  // namespace

Status accumulate_merged(std::span<const Launch> launches) {
  return run_merged(launches, [](const KernelContext& context) {
    return AddRows{context.inputs[2].as<const std::int64_t>()};
  });
}

Status accumulate(const KernelContext& context) { return run_one(accumulate_merged, context); }

#define EBB_UPDATE(name, Rule)                             \
  Status name##_merged(std::span<const Launch> launches) { \
    return update_merged<optim::Rule>(launches);           \
  }                                                        \
  Status name(const KernelContext& context) { return run_one(name##_merged, context); }
using optim::kCentered, optim::kMomentum;
#include "ebb/optim/kernels/rules.inc"

}  // namespace ebb::cuda
