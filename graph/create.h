#pragma once
#include "ebb/core/ops/create.h"
#include "ebb/core/ops/memory_figures.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/graph/graph.h"

namespace ebb {

namespace detail {
// First argument of the functions below: a graph, and the line of the call.
class InGraph {
 public:
  InGraph(Graph& graph,
          CallSite site = CallSite::here()) noexcept;  // NOLINT: implicit is the point

  // What a function without a graph makes, as a node: it has no inputs that would name the graph.
  Tensor record(const auto& make) const {
    const TapeModeScope tracing;
    tape_mode().tracing = &recorder_;
    const CallSiteScope at(site_);
    return make();
  }

 private:
  Recorder& recorder_;
  const CallSite site_;
};
}  // namespace detail

// Tensors of a graph made without inputs: nodes that a session computes in each run. (The same
// functions without a graph make values, which a graph that uses them keeps.) What follows the
// graph is as without one: a dtype or numbers may stand for the options. The options' device is
// ignored; the session has one. They throw the same errors.
template <class Options = CreateOptions>
Tensor zeros(const detail::InGraph& graph, const Shape& shape, const Options& options = {}) {
  return graph.record([&] { return zeros(shape, options); });
}
template <class Options = CreateOptions>
Tensor ones(const detail::InGraph& graph, const Shape& shape, const Options& options = {}) {
  return graph.record([&] { return ones(shape, options); });
}
template <class Options = CreateOptions>
Tensor full(const detail::InGraph& graph, const Shape& shape, double value,
            const Options& options = {}) {
  return graph.record([&] { return full(shape, value, options); });
}
template <class Options = ArangeOptions>
Tensor arange(const detail::InGraph& graph, double end, const Options& options = {}) {
  return graph.record([&] { return arange(end, options); });  // or arange(start, end)
}
template <class Options = ArangeOptions>
Tensor arange(const detail::InGraph& graph, double start, double end, const Options& options) {
  return graph.record([&] { return arange(start, end, options); });
}
Tensor arange(const detail::InGraph& graph, double start, double end, double step,
              std::same_as<DType> auto dtype) {
  return graph.record([&] { return arange(start, end, step, dtype); });
}
template <class Options = CreateOptions>
Tensor linspace(const detail::InGraph& graph, double start, double end, std::int64_t count,
                const Options& options = {}) {
  return graph.record([&] { return linspace(start, end, count, options); });
}
template <class Options = EyeOptions>
Tensor eye(const detail::InGraph& graph, std::int64_t rows, const Options& options = {}) {
  return graph.record([&] { return eye(rows, options); });
}
Tensor eye(const detail::InGraph& graph, std::int64_t rows, std::int64_t columns,
           std::same_as<DType> auto dtype) {
  return graph.record([&] { return eye(rows, columns, dtype); });
}

Tensor zeros(Graph&, std::integral auto, auto...) = delete;  // in braces: zeros(graph, {2, 3})
Tensor ones(Graph&, std::integral auto, auto...) = delete;   // in braces: ones(graph, {2, 3})

// Random tensors of a graph: nodes that draw anew in each run of a session, under the session's key
// (SessionOptions::seed). (The same functions without a graph draw once: a graph that captures the
// result reads the same values in every run.) Arguments and errors as above; for an open shape, use
// the _like forms.
template <class Options = UniformOptions>
Tensor uniform(const detail::InGraph& graph, const Shape& shape, const Options& options = {}) {
  return graph.record([&] { return uniform(shape, options); });
}
Tensor uniform(const detail::InGraph& graph, const Shape& shape, detail::PlainNumber auto low,
               detail::PlainNumber auto high) {
  return graph.record([&] { return uniform(shape, low, high); });
}
template <class Options = NormalOptions>
Tensor normal(const detail::InGraph& graph, const Shape& shape, const Options& options = {}) {
  return graph.record([&] { return normal(shape, options); });
}
Tensor normal(const detail::InGraph& graph, const Shape& shape, detail::PlainNumber auto mean,
              detail::PlainNumber auto standard_deviation) {
  return graph.record([&] { return normal(shape, mean, standard_deviation); });
}
template <class Options = BernoulliOptions>
Tensor bernoulli(const detail::InGraph& graph, const Shape& shape, const Options& options = {}) {
  return graph.record([&] { return bernoulli(shape, options); });
}
template <class Options = RandintOptions>
Tensor randint(const detail::InGraph& graph, std::int64_t low, std::int64_t high,
               const Shape& shape, const Options& options = {}) {
  return graph.record([&] { return randint(low, high, shape, options); });
}
Tensor permutation(const detail::InGraph& graph, std::int64_t count);

namespace memory {
// The figures of core/ops/memory_figures.h, read in each run at roughly this place of the program.
// Nodes above may run later and nodes below earlier; to fix the order, use the functions there that
// take a tensor to follow.
Tensor bytes_in_use(const ebb::detail::InGraph& graph);
Tensor max_bytes_in_use(const ebb::detail::InGraph& graph);
Tensor bytes_limit(const ebb::detail::InGraph& graph);
}  // namespace memory

}  // namespace ebb
