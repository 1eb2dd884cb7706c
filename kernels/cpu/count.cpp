// Exact sums of integers and of bool, in 64 bits, in any order.
#include <atomic>
#include <functional>

#include "ebb/core/kernels/for_dtype.h"
#include "ebb/core/kernels/reduce.h"
#include "ebb/kernels/cpu/fold.h"

namespace ebb::cpu {
namespace {

// Wraps around, as sums of i64 do.
using Total = std::uint64_t;

// What is made of a sum: itself, or whether it counts any, or all, of its terms.
enum class Form { sum, any, all };

Status reduce(const KernelContext& context, Form form) {
  const Buffer &in = context.inputs[0], &out = context.outputs[0];
  const std::int64_t results = out.elements(), count = in.elements();
  if (results == 0) return {};
  const auto terms = static_cast<Total>(count / results);
  const auto put = [form, terms, to = out.data](std::int64_t i, Total total) {
    if (form == Form::sum)
      static_cast<std::int64_t*>(to)[i] = static_cast<std::int64_t>(total);
    else
      static_cast<bool*>(to)[i] = form == Form::any ? total != 0 : total == terms;
  };
  if (count == 0) {
    for (std::int64_t i = 0; i < results; ++i) put(i, 0);
    return {};
  }
  const MergedAxes axes(in.spec.shape, context.attribute<Reduction>().axes);
  return for_stored_integer(in.spec.dtype, [&]<class T>(T) {
    const auto* from = in.as<const T>();
    if (!axes.reduces_all()) return fold<256>(from, axes, Total{0}, std::plus<>(), put);
    std::atomic<Total> total = 0;
    for_pieces(count, kPieceElements, [&](std::int64_t begin, std::int64_t end) {
      total.fetch_add(fold_run(from + begin, end - begin, Total{0}, std::plus<>()),
                      std::memory_order_relaxed);
    });
    put(0, total.load());
  });
}

}  // namespace

Status sum_integers(const KernelContext& context) { return reduce(context, Form::sum); }
Status any(const KernelContext& context) { return reduce(context, Form::any); }
Status all(const KernelContext& context) { return reduce(context, Form::all); }

}  // namespace ebb::cpu
