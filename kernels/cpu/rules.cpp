// The update rules of optim/kernels/rules.inc. A rule is compiled for float and double, each with
// the gradient as given and changed. Other dtypes go through chunks on the stack, so that loops do
// not multiply by dtypes.
#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/kernels/cpu/pieces.h"
#include "ebb/kernels/cpu/vector_half.h"
#include "ebb/optim/kernels/rules.h"

namespace ebb::cpu {
namespace {

// Elements of an array as T: float where it may have 16 bits, double where it is f32 or f64.
template <class T>
void load(const Buffer& from, std::int64_t first, T* to, std::int64_t count) noexcept {
  if constexpr (std::is_same_v<T, double>)
    std::copy_n(from.as<const float>() + first, count, to);
  else if (from.spec.dtype == DType::bf16)
    convert_run(from.as<const BFloat16>() + first, to, count);
  else
    convert_run(from.as<const Float16>() + first, to, count);
}
template <class T>
void store(const T* from, const Buffer& to, std::int64_t first, std::int64_t count) noexcept {
  if constexpr (std::is_same_v<T, double>)
    std::transform(from, from + count, to.as<float>() + first,
                   [](double x) { return static_cast<float>(x); });
  else if (to.spec.dtype == DType::bf16)
    convert_run(from, to.as<BFloat16>() + first, count);
  else
    convert_run(from, to.as<Float16>() + first, count);
}

// Restrict: the arrays are different tensors.
template <class Rule, bool kAsGiven, class T, class... Arrays>
void update_run(const typename Rule::template Constants<T>& constants,
                const optim::GradientAsGiven<T>& given, std::int64_t count,
                const T* __restrict gradient, Arrays* __restrict... arrays) noexcept {
  const auto c = constants;
  const auto as_given = given;
  for (std::int64_t i = 0; i < count; ++i) {
    T x[] = {arrays[i]...};
    Rule::update(c, x, kAsGiven ? gradient[i] : as_given(gradient[i]));
    int k = 0;
    ((arrays[i] = x[k++]), ...);
  }
}

template <class Rule, class T>
class Update {
 public:
  static constexpr std::size_t kArrays = 2 + Rule::kSlots, kGradient = kArrays - 1;

  Update(const KernelContext& context, const optim::UpdateScalars& scalars)
      : arrays_(context.inputs.first(kArrays)),
        constants_(Rule::template constants<T>(context.attribute<typename Rule::Attributes>(),
                                               static_cast<double>(*scalars.step), *scalars.rate)),
        given_(optim::gradient_as_given<T>(
            scalars, context.attribute<typename Rule::Attributes>().clip_value)),
        as_given_(given_.is_unchanged()) {
    for (const Buffer& array : arrays_) in_place_ = in_place_ && is_stored(array);
  }

  void run() const noexcept {
    for_pieces(arrays_[0].elements(), kPieceElements, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t some = in_place_ ? end - begin : kChunk;
      for (std::int64_t i = begin; i < end; i += some) run(i, std::min(some, end - i));
    });
  }

 private:
  using Pointers = std::array<T*, kArrays>;
  static bool is_stored(const Buffer& array) noexcept {
    return array.spec.dtype == (std::is_same_v<T, float> ? DType::f32 : DType::f64);
  }
  void run(std::int64_t first, std::int64_t count) const noexcept {
    T converted[kArrays][kChunk];
    Pointers at;
    for (std::size_t k = 0; k < kArrays; ++k) {
      at[k] = is_stored(arrays_[k]) ? arrays_[k].as<T>() + first : converted[k];
      if (at[k] == converted[k]) load(arrays_[k], first, at[k], count);
    }
    run(at, count, std::make_index_sequence<kGradient>{});
    for (std::size_t k = 0; k < kGradient; ++k)
      if (at[k] == converted[k]) store(at[k], arrays_[k], first, count);
  }
  template <std::size_t... K>
  void run(const Pointers& at, std::int64_t count, std::index_sequence<K...>) const noexcept {
    if (as_given_)
      update_run<Rule, true, T>(constants_, given_, count, at[kGradient], at[K]...);
    else
      update_run<Rule, false, T>(constants_, given_, count, at[kGradient], at[K]...);
  }

  const std::span<const Buffer> arrays_;
  const typename Rule::template Constants<T> constants_;
  const optim::GradientAsGiven<T> given_;
  const bool as_given_;
  bool in_place_ = true;
};

template <class Rule>
Status update(const KernelContext& context) {
  constexpr std::size_t kArrays = 2 + Rule::kSlots;
  bool has_half = false, has_wide = false;
  for (const Buffer& array : context.inputs.first(kArrays)) {
    if (!is_floating(array.spec.dtype)) return kNoKernel;
    has_half = has_half || is_half(array.spec.dtype);
    has_wide = has_wide || array.spec.dtype == DType::f64;
  }
  if (has_half && has_wide) return kNoKernel;
  const optim::UpdateScalars scalars(context, kArrays);
  if (!scalars.is_open()) return {};
  if (has_wide)
    Update<Rule, double>(context, scalars).run();
  else
    Update<Rule, float>(context, scalars).run();
  return {};
}

}  // namespace

#define EBB_UPDATE(name, Rule) \
  Status name(const KernelContext& context) { return update<optim::Rule>(context); }
using optim::kCentered, optim::kMomentum;
#include "ebb/optim/kernels/rules.inc"

}  // namespace ebb::cpu
