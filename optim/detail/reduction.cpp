#include "ebb/optim/detail/reduction.h"

#include "ebb/core/base/interned.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/collective.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/ops/where.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/optim/all_operators.h"
#include "ebb/optim/rule.h"

namespace ebb::optim {

namespace {

// Bytes from which on a bucket is complete: large enough for the network, small enough for the
// first to be under way early.
constexpr std::int64_t kBucketBytes = 4 << 20;

// Operators of a reduction have no history; what they make are gradients.
class AsGradients : NoCopy {
 public:
  AsGradients() : scope_(ebb::detail::without_history()) {
    ebb::detail::tape_mode().category = memory::Category::gradient;
  }

 private:
  const ebb::detail::TapeModeScope scope_;
};

}  // namespace

Reduction::Reduction(const distributed::World& world, const Entries& parameters, const Tensor& rows,
                     Tensors starts)
    : world_(world),
      parameters_(parameters),
      rows_(rows),
      starts_(std::move(starts)),
      places_(parameters.size()) {
  // Names a bucket in full, so that ranks with other parameters between first and last differ.
  std::string first, last, all;
  const auto name = [&] {
    if (buckets_.empty()) return;
    buckets_.back().name =
        ebb::detail::interned(buckets_.back().left == 1 ? "the gradient of '" + first + "'"
                                                        : "the gradients of '" + last + "' to '" +
                                                              first + "' (" + all + ")");
  };
  for (std::size_t i = parameters.size(); i-- > 0;) {
    const Tensor& parameter = parameters[i]->tensor;
    const DType sum_dtype =
        starts_.empty() ? state_dtype_of(parameter.dtype()) : starts_[i].dtype();
    const std::int64_t wanted = kBucketBytes / static_cast<std::int64_t>(size_of(sum_dtype));
    if (buckets_.empty() || makes_shares_ || buckets_.back().elements >= wanted ||
        buckets_.back().dtype != parameter.dtype() || buckets_.back().sum_dtype != sum_dtype) {
      name();
      buckets_.push_back({.dtype = parameter.dtype(), .sum_dtype = sum_dtype});
      first = parameters[i]->name;
      all.clear();
    }
    Bucket& bucket = buckets_.back();
    places_[i] = {buckets_.size() - 1, bucket.elements};
    bucket.elements += parameter.shape().elements();
    ++bucket.left;
    last = parameters[i]->name;
    all += (all.empty() ? "" : ", ") + last + ' ' + parameter.shape().to_string();
  }
  name();
}

Reduction::~Reduction() {
  if (!is_over_) world_.state().drain();
}

Tensor Reduction::view(const Tensor& bucket, std::size_t i) const {
  const Shape& shape = parameters_[i]->tensor.shape();
  const std::int64_t begin = places_[i].begin;
  return reshape(slice(bucket, begin, begin + shape.elements()), shape);
}

Tensor Reduction::sum(std::size_t i) const {
  const Tensor& total = buckets_[places_[i].bucket].total;
  return makes_shares_ ? total : view(total, i);
}

void Reduction::open(std::size_t index) {
  Bucket& bucket = buckets_[index];
  const Tensor none = fill_like(rows_, 0);
  bucket.total = broadcast_to(
      cast(none, bucket.sum_dtype),
      {makes_shares_ ? ebb::detail::share_of(bucket.elements, world_.size(), world_.rank())
                     : bucket.elements});
  if (!is_in_order_) return;
  if (!makes_shares_) bucket.parts = broadcast_to(cast(none, bucket.dtype), {bucket.elements});
  for (std::size_t i = 0; i < starts_.size(); ++i)
    if (places_[i].bucket == index) assign(sum(i), starts_[i]);
}

void Reduction::arrive(std::size_t i, const Tensor& gradient) {
  const AsGradients scope;
  Bucket& bucket = buckets_[places_[i].bucket];
  if (!bucket.total.defined()) open(places_[i].bucket);
  if (makes_shares_)
    bucket.parts = reshape(cast(gradient, bucket.dtype), {bucket.elements});
  else if (is_in_order_)
    assign(view(bucket.parts, i), cast(gradient, bucket.dtype));
  else
    apply_one(accumulate_op, {view(bucket.total, i), gradient, rows_}, {}, CallSite::here());
  if (--bucket.left > 0) return;
  if (!is_in_order_) {
    bucket.total = ebb::detail::begin_total(bucket.total, world_, bucket.name);
    return;
  }
  bucket.total =
      ebb::detail::total_in_order(bucket.total, bucket.parts, rows_, world_, bucket.name);
  bucket.parts = Tensor();
}

Tensors Reduction::sums() {
  const AsGradients scope;
  if (!is_in_order_)
    for (Bucket& bucket : buckets_) bucket.total = ebb::detail::end_total(bucket.total, world_);
  is_over_ = true;
  Tensors sums;
  for (std::size_t i = 0; i < parameters_.size(); ++i) sums.push_back(sum(i));
  return sums;
}

WorldMean::WorldMean(const distributed::World& world, const Tensor& rows, const Tensor& loss)
    : world_(world), loss_(loss) {
  const ebb::detail::TapeModeScope scope(ebb::detail::without_history());
  const Tensor weight = cast(rows, DType::f64);
  Tensor weighted = fill_like(weight, 0);
  if (loss.defined())  // of no rows it is NaN
    weighted = where(rows > 0, cast(reshape(loss, {}), DType::f64) * weight, 0);
  sums_ = stack({weight, weighted});
  if (!world.ordered()) sums_ = ebb::detail::begin_total(sums_, world, "rows and loss of a step");
}

WorldMean::~WorldMean() {
  if (!count.defined()) world_.state().drain();
}

void WorldMean::finish() {
  const ebb::detail::TapeModeScope scope(ebb::detail::without_history());
  sums_ = world_.ordered() ? distributed::all_reduce(sums_, world_)
                           : ebb::detail::end_total(sums_, world_);
  const Tensor rows = select(sums_, 0, 0);
  count = cast(rows, DType::i64);
  if (loss_.defined())
    mean = reshape(cast(select(sums_, 0, 1) / rows, loss_.dtype()), loss_.shape());
}

}  // namespace ebb::optim
