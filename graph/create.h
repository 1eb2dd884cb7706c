#pragma once
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/memory_figures.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/graph/graph.h"

namespace ebb {

namespace detail {
// Calls a function without a graph while `graph` records: its operators have no inputs that would
// name the graph.
template <class Make>
Tensor recorded(const Graph& graph, const Make& make) {
  const Ref<Recorder> recorder = graph;
  const TapeModeScope tracing;
  tape_mode().tracing = recorder.get();
  return make();
}
}  // namespace detail

// Tensors of a graph made without inputs: nodes that a session computes in each run. (The same
// functions without a graph make values, which a graph that uses them keeps.) The options' device
// is ignored; the session has one. They throw the same errors.
inline Tensor zeros(Graph& graph, const Shape& shape, const CreateOptions& options = {},
                    CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return zeros(shape, options, site); });
}
inline Tensor ones(Graph& graph, const Shape& shape, const CreateOptions& options = {},
                   CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return ones(shape, options, site); });
}
inline Tensor full(Graph& graph, const Shape& shape, double value,
                   const CreateOptions& options = {}, CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return full(shape, value, options, site); });
}
inline Tensor arange(Graph& graph, double end, const ArangeOptions& options = {},
                     CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return arange(end, options, site); });
}
inline Tensor arange(Graph& graph, double start, double end, const ArangeOptions& options = {},
                     CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return arange(start, end, options, site); });
}
inline Tensor linspace(Graph& graph, double start, double end, std::int64_t count,
                       const CreateOptions& options = {}, CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return linspace(start, end, count, options, site); });
}
inline Tensor eye(Graph& graph, std::int64_t rows, const EyeOptions& options = {},
                  CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return eye(rows, options, site); });
}

Tensor zeros(Graph&, std::integral auto, auto...) = delete;  // in braces: zeros(graph, {2, 3})
Tensor ones(Graph&, std::integral auto, auto...) = delete;   // in braces: ones(graph, {2, 3})

// Shorthands for options that need no name, as without a graph.
Tensor zeros(Graph& graph, const Shape& shape, std::same_as<DType> auto dtype,
             CallSite site = CallSite::here()) {
  return zeros(graph, shape, CreateOptions{.dtype = dtype}, site);
}
Tensor ones(Graph& graph, const Shape& shape, std::same_as<DType> auto dtype,
            CallSite site = CallSite::here()) {
  return ones(graph, shape, CreateOptions{.dtype = dtype}, site);
}
Tensor full(Graph& graph, const Shape& shape, double value, std::same_as<DType> auto dtype,
            CallSite site = CallSite::here()) {
  return full(graph, shape, value, CreateOptions{.dtype = dtype}, site);
}
template <detail::PlainNumber Step, std::same_as<DType> Type = DType>
Tensor arange(Graph& graph, double start, double end, Step step, Type dtype = DType::i64,
              CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return arange(start, end, step, dtype, site); });
}
Tensor arange(Graph& graph, double end, std::same_as<DType> auto dtype,
              CallSite site = CallSite::here()) {
  return arange(graph, end, ArangeOptions{.dtype = dtype}, site);
}
Tensor arange(Graph& graph, double start, double end, std::same_as<DType> auto dtype,
              CallSite site = CallSite::here()) {
  return arange(graph, start, end, ArangeOptions{.dtype = dtype}, site);
}
Tensor linspace(Graph& graph, double start, double end, std::int64_t count,
                std::same_as<DType> auto dtype, CallSite site = CallSite::here()) {
  return linspace(graph, start, end, count, CreateOptions{.dtype = dtype}, site);
}
template <std::integral Columns, std::same_as<DType> Type = DType>
Tensor eye(Graph& graph, std::int64_t rows, Columns columns, Type dtype = DType::f32,
           CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return eye(rows, columns, dtype, site); });
}
Tensor eye(Graph& graph, std::int64_t rows, std::same_as<DType> auto dtype,
           CallSite site = CallSite::here()) {
  return eye(graph, rows, EyeOptions{.dtype = dtype}, site);
}

// Random tensors of a graph: nodes that draw anew in each run of a session, under the session's key
// (SessionOptions::seed). The options' device is ignored; the session has one. (The same functions
// without a graph draw once: a graph that captures the result reads the same values in every run.)
// They throw the same errors: ShapeError for another dtype or an open shape (use the _like forms),
// Error for invalid bounds, deviations or probabilities.
inline Tensor uniform(Graph& graph, const Shape& shape, const UniformOptions& options = {},
                      CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return uniform(shape, options, site); });
}
inline Tensor normal(Graph& graph, const Shape& shape, const NormalOptions& options = {},
                     CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return normal(shape, options, site); });
}
inline Tensor bernoulli(Graph& graph, const Shape& shape, const BernoulliOptions& options = {},
                        CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return bernoulli(shape, options, site); });
}
Tensor uniform(Graph& graph, const Shape& shape, detail::PlainNumber auto low,
               detail::PlainNumber auto high, CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return uniform(shape, low, high, site); });
}
Tensor normal(Graph& graph, const Shape& shape, detail::PlainNumber auto mean,
              detail::PlainNumber auto standard_deviation, CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return normal(shape, mean, standard_deviation, site); });
}
Tensor bernoulli(Graph& graph, const Shape& shape, detail::PlainNumber auto probability,
                 CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return bernoulli(shape, probability, site); });
}
Tensor uniform(Graph& graph, const Shape& shape, std::same_as<DType> auto dtype,
               CallSite site = CallSite::here()) {
  return uniform(graph, shape, UniformOptions{.dtype = dtype}, site);
}
Tensor normal(Graph& graph, const Shape& shape, std::same_as<DType> auto dtype,
              CallSite site = CallSite::here()) {
  return normal(graph, shape, NormalOptions{.dtype = dtype}, site);
}

inline Tensor randint(Graph& graph, std::int64_t low, std::int64_t high, const Shape& shape,
                      const RandintOptions& options = {}, CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return randint(low, high, shape, options, site); });
}
Tensor randint(Graph& graph, std::int64_t low, std::int64_t high, const Shape& shape,
               std::same_as<DType> auto dtype, CallSite site = CallSite::here()) {
  return randint(graph, low, high, shape, RandintOptions{.dtype = dtype}, site);
}

inline Tensor permutation(Graph& graph, std::int64_t count, CallSite site = CallSite::here()) {
  return detail::recorded(graph, [&] { return permutation(count, {}, site); });
}

namespace memory {
// The figures of core/ops/memory_figures.h, read in each run at roughly this place of the program.
// Nodes above may run later and nodes below earlier; to fix the order, use the functions there that
// take a tensor to follow.
inline Tensor bytes_in_use(Graph& graph, CallSite site = CallSite::here()) {
  return ebb::detail::recorded(graph, [&] { return bytes_in_use(Device::cpu(), site); });
}
inline Tensor max_bytes_in_use(Graph& graph, CallSite site = CallSite::here()) {
  return ebb::detail::recorded(graph, [&] { return max_bytes_in_use(Device::cpu(), site); });
}
inline Tensor bytes_limit(Graph& graph, CallSite site = CallSite::here()) {
  return ebb::detail::recorded(graph, [&] { return bytes_limit(Device::cpu(), site); });
}
}  // namespace memory

}  // namespace ebb
