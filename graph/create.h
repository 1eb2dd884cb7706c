#pragma once
#include "ebb/core/ops/create.h"
#include "ebb/graph/graph.h"

namespace ebb {

// Tensors of a graph made without inputs: nodes that a session computes in each run. (The same
// functions without a graph make values, which a graph that uses them keeps.) The options' device
// is ignored; the session has one. They throw the same errors.
Tensor zeros(Graph& graph, const Shape& shape, const CreateOptions& options = {},
             CallSite site = CallSite::here());
Tensor ones(Graph& graph, const Shape& shape, const CreateOptions& options = {},
            CallSite site = CallSite::here());
Tensor full(Graph& graph, const Shape& shape, double value, const CreateOptions& options = {},
            CallSite site = CallSite::here());
Tensor arange(Graph& graph, double end, const ArangeOptions& options = {},
              CallSite site = CallSite::here());
Tensor arange(Graph& graph, double start, double end, const ArangeOptions& options = {},
              CallSite site = CallSite::here());
Tensor linspace(Graph& graph, double start, double end, std::int64_t count,
                const CreateOptions& options = {}, CallSite site = CallSite::here());
Tensor eye(Graph& graph, std::int64_t rows, const EyeOptions& options = {},
           CallSite site = CallSite::here());

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
Tensor arange(Graph& graph, double start, double end, detail::PlainNumber auto step,
              CallSite site = CallSite::here()) {
  return arange(graph, start, end, ArangeOptions{.step = static_cast<double>(step)}, site);
}
Tensor arange(Graph& graph, double start, double end, detail::PlainNumber auto step,
              std::same_as<DType> auto dtype, CallSite site = CallSite::here()) {
  return arange(graph, start, end, ArangeOptions{.step = static_cast<double>(step), .dtype = dtype},
                site);
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
Tensor eye(Graph& graph, std::int64_t rows, std::integral auto columns,
           CallSite site = CallSite::here()) {
  return eye(graph, rows, EyeOptions{.columns = static_cast<std::int64_t>(columns)}, site);
}
Tensor eye(Graph& graph, std::int64_t rows, std::integral auto columns,
           std::same_as<DType> auto dtype, CallSite site = CallSite::here()) {
  return eye(graph, rows, EyeOptions{.columns = static_cast<std::int64_t>(columns), .dtype = dtype},
             site);
}
Tensor eye(Graph& graph, std::int64_t rows, std::same_as<DType> auto dtype,
           CallSite site = CallSite::here()) {
  return eye(graph, rows, EyeOptions{.dtype = dtype}, site);
}

}  // namespace ebb
