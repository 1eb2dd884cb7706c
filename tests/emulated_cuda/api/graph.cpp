// Captures and graphs.
#include <algorithm>

#include "ebb/tests/emulated_cuda/api/call.h"

using namespace ebb::emulated;

namespace {

// Runs the nodes in a random order that their edges allow.
class GraphWork final : public Work {
 public:
  explicit GraphWork(std::shared_ptr<const GraphNodes> graph) : graph_(std::move(graph)) {}
  std::string name() const override { return "graph"; }
  Outcome run(Random& random) const override {
    const GraphNodes& nodes = *graph_;
    std::vector<bool> done(nodes.size());
    std::vector<std::size_t> ready;
    for (std::size_t count = 0; count < nodes.size(); ++count) {
      ready.clear();
      for (std::size_t i = 0; i < nodes.size() && ready.size() < kChoice; ++i)
        if (!done[i] && std::all_of(nodes[i].after.begin(), nodes[i].after.end(),
                                    [&](std::size_t before) { return done[before]; }))
          ready.push_back(i);
      const std::size_t chosen = ready[random.below(ready.size())];
      if (Outcome outcome = nodes[chosen].work->run(random); !outcome.ok()) {
        outcome.text = nodes[chosen].work->name() + ": " + outcome.text;
        return outcome;
      }
      done[chosen] = true;
    }
    return {};
  }

 private:
  static constexpr std::size_t kChoice = 8;
  const std::shared_ptr<const GraphNodes> graph_;
};

// Whether the origin stream depends on every captured node.
bool is_joined(const Capture& capture) {
  const GraphNodes& nodes = *capture.graph;
  std::vector<bool> reached(nodes.size());
  std::vector<std::size_t> open = capture.origin->after;
  while (!open.empty()) {
    const std::size_t node = open.back();
    open.pop_back();
    if (reached[node]) continue;
    reached[node] = true;
    open.insert(open.end(), nodes[node].after.begin(), nodes[node].after.end());
  }
  return std::all_of(reached.begin(), reached.end(), [](bool is) { return is; });
}

}  // namespace

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return call([&](Machine& own, Machine::Lock&) {
    if (mode != cudaStreamCaptureModeRelaxed) return cudaErrorInvalidValue;  // ebb has no other
    if (!own.is_stream(stream)) return cudaErrorStreamCaptureUnsupported;
    if (stream->capture) return cudaErrorIllegalState;
    stream->capture = std::make_shared<Capture>(Capture{stream, {stream}});
    stream->after.clear();
    return cudaSuccess;
  });
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return call([&](Machine& own, Machine::Lock&) {
    if (!graph) return cudaErrorInvalidValue;
    *graph = nullptr;
    if (!own.is_stream(stream) || !stream->capture) return cudaErrorIllegalState;
    const CapturePtr capture = stream->capture;
    if (capture->origin != stream) {
      capture->invalid = true;
      return cudaErrorStreamCaptureUnmatched;
    }
    const bool joined = is_joined(*capture);
    for (CUstream_st* other : capture->streams) {
      other->capture.reset();
      other->after.clear();
    }
    if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
    capture->invalid = true;  // for events that were recorded in it
    if (!joined) return cudaErrorStreamCaptureUnjoined;
    *graph = new CUgraph_st{capture->graph};
    own.graphs.insert(*graph);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long) {
  return call([&](Machine& own, Machine::Lock&) {
    if (!exec || own.graphs.count(graph) == 0) return cudaErrorInvalidValue;
    if (const cudaError_t wish = own.injected(Fault::instantiate_graph); wish != cudaSuccess)
      return wish;
    constexpr std::size_t kNodeBytes = 64 << 10;  // as much as drivers before CUDA 12.4 took
    std::unique_ptr<CUgraphExec_st> made(new CUgraphExec_st{graph->graph});
    if (!made->memory.take((graph->graph->size() + 1) * kNodeBytes))
      return cudaErrorMemoryAllocation;
    *exec = made.release();
    own.execs.insert(*exec);
    return cudaSuccess;
  });
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return call([&](Machine& own, Machine::Lock& lock) {
    if (own.execs.count(exec) == 0) return cudaErrorInvalidValue;
    if (const cudaError_t wish = own.injected(Fault::launch_graph); wish != cudaSuccess)
      return wish;
    ++own.statistics.graph_launches;
    return own.put(lock, stream, std::make_shared<GraphWork>(exec->graph));
  });
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  auto lock = machine().lock();
  if (machine().graphs.erase(graph) == 0) return answer(cudaErrorInvalidValue);
  delete graph;
  return cudaSuccess;
}
// Launches that still wait keep the nodes alive.
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  auto lock = machine().lock();
  if (machine().execs.erase(exec) == 0) return answer(cudaErrorInvalidValue);
  delete exec;
  return cudaSuccess;
}
