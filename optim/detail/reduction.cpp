#include "ebb/optim/detail/reduction.h"

#include "ebb/core/base/interned.h"
#include "ebb/core/base/no_copy.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/collective.h"
#include "ebb/core/ops/comparison.h"
#include "ebb/core/ops/copy.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/layout.h"
#include "ebb/core/ops/shape.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/ops/where.h"
#include "ebb/core/parameters/shared_parameter.h"
#include "ebb/core/tensor/apply.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/optim/all_operators.h"
#include "ebb/optim/rule.h"

namespace ebb::optim {

namespace {

// Bytes from which on a bucket is complete: large enough for the network, small enough for the
// first to be under way early.
constexpr std::int64_t kBucketBytes = 4 << 20;
constexpr auto kGradient = memory::Category::gradient;  // what a reduction makes

class Reduction : NoCopy {
 public:
  Reduction(const distributed::World& world, const Entries& parameters, const Tensor& rows,
            const Tensor& loss, Tensors starts);
  // After an exception waits for sums under way, as their memory goes.
  ~Reduction() {
    if (!is_over_) world_.state().drain();
  }
  void arrive(std::size_t i, const Tensor& gradient);
  Summed finish();

 private:
  struct Bucket {
    std::int64_t elements = 0;
    DType dtype = DType::f32, sum_dtype = DType::f32;  // of the parameters, of their sums
    std::size_t left = 0;                              // gradients that have not arrived
    const char* name = "";
    Tensor total = {}, parts = {};  // parts: of sums in order
  };
  struct Place {
    std::size_t bucket;
    std::int64_t begin;
  };
  Tensor view(const Tensor& bucket, std::size_t i) const;
  Tensor sum(std::size_t i) const;
  void open(std::size_t bucket);

  const distributed::World world_;
  const bool is_in_order_ = is_in_order(world_);
  const bool makes_shares_ = world_.sharding() >= distributed::Sharding::gradients;
  const Entries& parameters_;
  const Tensor rows_, loss_;
  const Tensors starts_;
  std::vector<Place> places_;
  std::vector<Bucket> buckets_;
  Tensor rows_and_loss_;
  bool is_over_ = false;
};

Reduction::Reduction(const distributed::World& world, const Entries& parameters, const Tensor& rows,
                     const Tensor& loss, Tensors starts)
    : world_(world),
      parameters_(parameters),
      rows_(rows),
      loss_(loss),
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
        buckets_.back().dtype != parameter.dtype()) {
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

  const ebb::detail::TapeModeScope scope(ebb::detail::without_history());
  const Tensor weight = cast(rows, DType::f64);
  Tensor weighted = fill_like(weight, 0);
  if (loss.defined())  // of no rows it is NaN
    weighted = where(rows > 0, cast(reshape(loss, {}), DType::f64) * weight, 0);
  rows_and_loss_ = stack({weight, weighted});
  if (!world.ordered())
    rows_and_loss_ = ebb::detail::begin_total(rows_and_loss_, world, "rows and loss of a step");
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
  const ebb::detail::TapeModeScope scope(ebb::detail::without_history(kGradient));
  ebb::detail::let_go(parameters_[i]->tensor);  // the backward pass is done with it
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

Summed Reduction::finish() {
  Summed summed;
  {
    const ebb::detail::TapeModeScope scope(ebb::detail::without_history(kGradient));
    if (!is_in_order_)
      for (Bucket& bucket : buckets_) bucket.total = ebb::detail::end_total(bucket.total, world_);
    for (std::size_t i = 0; i < parameters_.size(); ++i) summed.sums.push_back(sum(i));
  }
  const ebb::detail::TapeModeScope scope(ebb::detail::without_history());
  rows_and_loss_ = world_.ordered() ? distributed::all_reduce(rows_and_loss_, world_)
                                    : ebb::detail::end_total(rows_and_loss_, world_);
  is_over_ = true;
  const Tensor rows = select(rows_and_loss_, 0, 0);
  summed.count = cast(rows, DType::i64);
  if (loss_.defined())
    summed.loss = reshape(cast(select(rows_and_loss_, 0, 1) / rows, loss_.dtype()), loss_.shape());
  return summed;
}

}  // namespace

Summed sum_over(const distributed::World& world, const Entries& parameters, const Tensor& rows,
                const Tensor& loss, Tensors starts,
                const std::function<void(const ebb::detail::TakeGradient&)>& differentiate) {
  Reduction reduction(world, parameters, rows, loss, std::move(starts));
  differentiate([&](std::size_t i, const Tensor& gradient) { reduction.arrive(i, gradient); });
  return reduction.finish();
}

}  // namespace ebb::optim
