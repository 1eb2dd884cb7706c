#pragma once
#include <string_view>
#include <vector>

#include "ebb/core/memory/micro_batch.h"
#include "ebb/core/memory/plan.h"
#include "ebb/core/tensor/recorder.h"
#include "ebb/core/tensor/tensor.h"

namespace ebb {

class GraphState;

// A placeholder and the shape it will be fed with.
struct FedShape {
  Tensor placeholder;
  Shape shape;
};
using FedShapes = std::vector<FedShape>;

// A program under construction: applying operators to its tensors adds nodes, and nothing runs
// before a Session does. A handle: tensors, Parameters and sessions share the graph, which lives as
// long as any of them. Concrete tensors used together with the graph's are captured by reference.
//
// Built by one thread at a time, and not while a session runs it.
class Graph {
 public:
  Graph();

  // A tensor to be fed. Dimensions may be open (-1). Throws Error for a name used twice or empty.
  Tensor placeholder(std::string_view name, DType dtype, const Shape& shape,
                     CallSite site = CallSite::here());

  // Memory that a session would take to run `fetches` with placeholders of these shapes on
  // `device`, of which only the profile matters. Throws the same errors as Session::run for these
  // fetches and shapes, and Error for a budget that no plan keeps to.
  memory::Plan plan(const Tensors& fetches, const FedShapes& shapes, const Device& device,
                    const memory::PlanOptions& options = {},
                    CallSite site = CallSite::here()) const;
  // The least budget to which a plan of these can be made to keep, in bytes. Throws the same
  // errors.
  std::size_t least_budget(const Tensors& fetches, const FedShapes& shapes, const Device& device,
                           CallSite site = CallSite::here()) const;

  // The largest micro-batch of a batch of `shapes` whose plan reserves at most `limit` (of which a
  // fraction is of the device's capacity); see memory::MicroBatch for what is promised. Cuts the
  // open leading axis that the feeds share; accumulate over all rows of the batch for an update
  // like the whole batch's. Throws Error for feeds without an open leading axis, or with different
  // numbers of rows; for statistics of a batch (batch_norm in training) and what else mixes rows;
  // for a loss that is a sum over them; and if not even one row fits, with the bytes it takes.
  memory::MicroBatch fit_micro_batch(const Tensors& fetches, const FedShapes& shapes,
                                     const Device& device, memory::Limit limit,
                                     CallSite site = CallSite::here()) const;

  // The number of nodes so far.
  std::size_t size() const noexcept;

  // The recorder, as Parameters take it.
  operator detail::Ref<Recorder>() const { return recorder_; }  // NOLINT: implicit by design
  GraphState& state() const noexcept;

 private:
  detail::Ref<Recorder> recorder_;  // a GraphState
};

}  // namespace ebb
