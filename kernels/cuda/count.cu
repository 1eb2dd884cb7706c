// Sums of integers and of bool. Exact, since 64-bit sums do not depend on the order.
#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/reduce.h"
#include "ebb/kernels/cuda/fold.h"

namespace ebb::cuda {
namespace {

enum class Form { sum, any, all };

struct Count {
  using State = unsigned long long;  // wraps around, as sums of i64 do
  void* out;                         // i64, or bool
  Form form;
  State terms;

  __device__ State none() const { return 0; }
  template <class T>
  __device__ void add(State& total, const T (&x)[kRun<T>], int count, std::int64_t, int) const {
    for (int k = 0; k < kRun<T>; ++k) total += k < count ? static_cast<State>(x[k]) : 0;
  }
  __device__ void merge(State& total, const State& other) const { total += other; }
  template <class Folded>
  __device__ void write(const Folded&, std::int64_t result, State total) const {
    if (form == Form::sum)
      static_cast<std::int64_t*>(out)[result] = static_cast<std::int64_t>(total);
    else
      static_cast<bool*>(out)[result] = form == Form::any ? total != 0 : total == terms;
  }
};

Status reduce(const KernelContext& context, Form form) noexcept {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  if (out.elements() == 0) return {};
  const auto terms = static_cast<unsigned long long>(in.elements() / out.elements());
  return for_stored_integer(in.spec.dtype, [&]<class T>(T) {
    return fold_axes<T>(context, context.attribute<Reduction>().axes, Count{out.data, form, terms});
  });
}

}  // namespace

Status sum_integers(const KernelContext& context) { return reduce(context, Form::sum); }
Status any(const KernelContext& context) { return reduce(context, Form::any); }
Status all(const KernelContext& context) { return reduce(context, Form::all); }

}  // namespace ebb::cuda
