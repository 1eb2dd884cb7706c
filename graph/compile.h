#pragma once
#include <any>
#include <array>
#include <cmath>
#include <concepts>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "ebb/allocator/limit.h"
#include "ebb/core/memory/plan.h"
#include "ebb/core/tensor/tensor.h"
#include "ebb/graph/passes.h"
#include "ebb/graph/session.h"

namespace ebb {

struct CompileOptions {
  // Limit of the bytes that the step's pool reserves: bytes, or memory::Limit::fraction(of the
  // capacity). Parameters, slots, arguments and results are the device's.
  std::optional<memory::Limit> memory_limit = {};
  // Most bytes that the step's pool may reserve, like memory_limit; each plan is made to keep to it
  // (memory::PlanOptions), unless passes are off. A call that cannot throws Error with the least
  // budget that would do.
  std::optional<memory::Limit> budget = {};
  // The tensor arguments, counted from 0, that have a row for each sample of the batch: a budget
  // may cut their leading axis into micro-batches (memory::PlanOptions). Tensors of a list count
  // one by one.
  std::vector<std::size_t> batch = {};
  std::size_t max_plans = 16;  // shapes kept; the least recently used goes first
  Passes passes = {};    // that plans take; false: none, and results equal eager's bit for bit
  bool details = false;  // whether plan() has its steps and buffers (memory::PlanOptions)
};

namespace detail {

// An argument that is no tensor: a part of the key by which a trace is found again.
struct HostArgument {
  std::any value;
  bool (*is_same)(const std::any& value, const std::any& other);  // `other` may be of another type
};

template <class T>
bool is_same_value(const std::any& value, const std::any& other) {
  const T &a = *std::any_cast<T>(&value), *b = std::any_cast<T>(&other);
  if (!b) return false;
  // Numbers of one bit pattern alone: 1 / x tells -0 from 0, and NaN is found again.
  if constexpr (std::floating_point<T>)
    return (a == *b && std::signbit(a) == std::signbit(*b)) || (a != a && *b != *b);
  else
    return a == *b;
}

template <class T>
inline constexpr bool kIsTensorList = false;
template <std::size_t N>
inline constexpr bool kIsTensorList<std::array<Tensor, N>> = true;
template <>
inline constexpr bool kIsTensorList<Tensors> = true;
template <>
inline constexpr bool kIsTensorList<std::vector<Tensor>> = true;

// Arguments of one call: all tensors in order, and everything else.
struct CallArguments {
  Tensors tensors;
  std::vector<std::int64_t> lists;  // in order: number of tensors in each list, -1 for a tensor
  std::vector<HostArgument> others;

  template <class T>
  void add(const T& argument) {
    if constexpr (std::same_as<T, Tensor>) {
      tensors.push_back(argument);
      lists.push_back(-1);
    } else if constexpr (kIsTensorList<T>) {
      for (const Tensor& tensor : argument) tensors.push_back(tensor);
      lists.push_back(static_cast<std::int64_t>(argument.size()));
    } else {
      using Value = std::conditional_t<std::is_convertible_v<const T&, std::string_view>,
                                       std::string, std::decay_t<T>>;
      static_assert(std::equality_comparable<Value> && std::copy_constructible<Value>,
                    "an argument of a compiled step is a Tensor, a list of tensors, or a value "
                    "that == compares: it tells one trace from another");
      others.push_back({Value(argument), is_same_value<Value>});
    }
  }
};

// The argument again, with the next of `tensors` in place of its own.
template <class T>
decltype(auto) with_tensors(const T& argument, const Tensor*& next) {
  if constexpr (std::same_as<T, Tensor>) {
    return Tensor(*next++);
  } else if constexpr (kIsTensorList<T>) {
    T list = argument;
    for (Tensor& tensor : list) tensor = *next++;
    return list;
  } else {
    return (argument);
  }
}

// Results as a list, and back.
inline Tensors list_of(Tensor result) { return {std::move(result)}; }
template <class T>
requires kIsTensorList<T> Tensors list_of(const T& results) {
  return Tensors(results.begin(), results.end());
}
template <template <class...> class TupleOrPair, std::same_as<Tensor>... T>
Tensors list_of(const TupleOrPair<T...>& results) {
  return std::apply([](const auto&... each) { return Tensors{each...}; }, results);
}

template <class Result>
Result result_of(Tensors&& list) {
  if constexpr (std::same_as<Result, void>) {
    return;
  } else if constexpr (std::same_as<Result, Tensor>) {
    return std::move(list[0]);
  } else if constexpr (std::same_as<Result, Tensors> || std::same_as<Result, std::vector<Tensor>>) {
    return Result(list.begin(), list.end());
  } else {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return Result{std::move(list[I])...};
    }
    (std::make_index_sequence<std::tuple_size_v<Result>>());
  }
}

// The part of a compiled step that does not know the function's type.
class CompiledCalls {
 public:
  // Calls the function with other tensors in place of the arguments'.
  using Function = std::function<Tensors(const Tensors&)>;

  static std::shared_ptr<CompiledCalls> make(const CompileOptions& options, CallSite site);
  virtual ~CompiledCalls() = default;
  virtual Tensors run(CallArguments arguments, const Function& function) = 0;
  virtual memory::Plan plan(CallArguments arguments, const Function& function) = 0;
  virtual memory::Breakdown memory() const = 0;
  virtual memory::Stats stats() const = 0;
  virtual std::size_t plans() const = 0;
};

// The calls of a step, held by each call: a function called when memory is short may drop the
// caller's handle. Throws Error for a step that was moved from.
std::shared_ptr<CompiledCalls> held(const std::shared_ptr<CompiledCalls>& calls);

// Whether compile() traces a function on this thread.
bool is_traced() noexcept;

}  // namespace detail

// A function that runs as a plan. A handle: copies share plans and memory, which go with the last
// of them.
template <class Function>
class CompiledStep {
 public:
  CompiledStep(Function function, const CompileOptions& options, CallSite site)
      : function_(std::make_shared<Function>(std::move(function))),
        calls_(detail::CompiledCalls::make(options, site)) {}

  // Computes function(arguments...). The first call for each set of shapes and dtypes traces the
  // function and plans its memory; the others run that plan. Calls of several threads take turns.
  //
  // When it throws, the call has not happened: parameters, slots, gradients and random state are as
  // before. (An index that the function computes and that is out of range is found when it is used,
  // as in a session: what was updated by then is torn. Parameters that the function has declared
  // stay: attempt() takes them back.) Throws what the function throws while it is traced; Error for
  // an argument that holds nothing, is symbolic, is on another device than the first call's, or has
  // a history (unless it is a leaf, or under NoGrad), or shares memory with a tensor that the
  // function captures and updates or differentiates, and if tensors made by the function are still
  // held outside after it; OutOfMemory.
  template <class... Arguments>
  auto operator()(const Arguments&... arguments) const {
    using Result = ResultOf<Arguments...>;
    static_assert(
        std::is_void_v<Result> || requires { detail::list_of(std::declval<Result&>()); },
        "a compiled step returns tensors: one, a list, an array, a pair or a tuple");
    if (detail::is_traced()) return static_cast<Result>((*function_)(arguments...));
    return detail::result_of<Result>(
        detail::held(calls_)->run(listed(arguments...), recorded(arguments...)));
  }

  // Memory that a call with such arguments takes from the step's pool, without making it. Values do
  // not matter. Throws as a call does.
  template <class... Arguments>
  memory::Plan plan(const Arguments&... arguments) const {
    return detail::held(calls_)->plan(listed(arguments...), recorded(arguments...));
  }

  // Bytes that the step holds, and captured_bytes of tensors that it refers to.
  memory::Breakdown memory() const { return detail::held(calls_)->memory(); }
  // Statistics of the step's pool.
  memory::Stats stats() const { return detail::held(calls_)->stats(); }
  // Number of plans kept: one for each set of shapes, dtypes and other arguments.
  std::size_t plans() const { return detail::held(calls_)->plans(); }

 private:
  template <class... Arguments>
  using ResultOf = std::decay_t<std::invoke_result_t<Function&, const Arguments&...>>;

  template <class... Arguments>
  static detail::CallArguments listed(const Arguments&... arguments) {
    detail::CallArguments list;
    (list.add(arguments), ...);
    return list;
  }
  // The function of the tensors alone. Refers to the arguments.
  template <class... Arguments>
  detail::CompiledCalls::Function recorded(const Arguments&... arguments) const {
    return [function = function_, &arguments...](const Tensors& tensors) -> Tensors {
      const Tensor* next = tensors.begin();
      std::tuple<decltype(detail::with_tensors(arguments, next))...> given{
          detail::with_tensors(arguments, next)...};
      if constexpr (std::is_void_v<ResultOf<Arguments...>>) {
        std::apply(*function, std::move(given));
        return {};
      } else {
        return detail::list_of(std::apply(*function, std::move(given)));
      }
    };
  }

  std::shared_ptr<Function> function_;
  std::shared_ptr<detail::CompiledCalls> calls_;  // null: moved from
};

// Makes a function of tensors, written as for eager, run as a graph does: in one arena, whose size
// is known before it runs.
//
//   auto step = compile([&](Tensor x, Tensor y) {
//     return adam.minimize(softmax_cross_entropy(model(x), y), params);
//   });
//   for (auto [x, y] : batches) Tensor loss = step(x, y);
//
// The function itself runs once for each set of shapes and dtypes of its tensor arguments, to be
// traced; what it reads of the program then stays as it was: a number of the host is frozen, as is
// a branch on it. What it does to tensors is done in every call: parameters and other captured
// tensors are updated in place, and gradients of leaves are left as its lines leave them.
//
// It takes tensors, lists of tensors, and values that == compares, which belong to the key of a
// trace; it returns tensors (one, a list, an array, a pair or a tuple), or nothing. Results have no
// history: using one in a loss is an Error. Reading a value inside is an Error too. Random numbers
// are those that its lines would have drawn from the thread's generator.
template <class Function>
CompiledStep<std::decay_t<Function>> compile(Function&& function,
                                             const CompileOptions& options = {},
                                             CallSite site = CallSite::here()) {
  return {std::forward<Function>(function), options, site};
}

}  // namespace ebb
