#pragma once
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ebb/core/tensor/trace.h"
#include "ebb/graph/compile.h"
#include "ebb/graph/executable.h"
#include "ebb/graph/graph_state.h"
#include "ebb/graph/variables.h"

namespace ebb::detail {

constexpr const char* kCompile = "compile";  // the call in messages
constexpr std::size_t kNowhere = ~std::size_t{0};

bool is_leaf(const Tensor& tensor) noexcept;
// "argument 2 of 3".
std::string argument_name(std::size_t i, std::size_t count);

// Key by which a trace is found again.
struct CallKey {
  // Of each tensor: dtype, rank, sizes, and for a leaf the first argument that is the same one.
  std::vector<std::int64_t> shapes;
  std::vector<HostArgument> others;

  CallKey(CallArguments& arguments, bool records);  // takes the arguments that are no tensors
  bool operator==(const CallKey& other) const;
};

// A result or a gradient of a call: its fetch, or kNowhere for a tensor that is not defined().
struct TracedResult {
  std::size_t fetch = kNowhere;
  bool loses_history = false;  // eager would have given it one
};

// A leaf whose gradient a call reads or leaves changed.
struct TracedLeaf {
  Tensor tensor = {};               // not defined(): an argument
  std::size_t argument = kNowhere;  // its number
  bool is_read = false, has_gradient = false, is_changed = false;
  std::size_t feed = kNowhere;  // of the gradient that it had
  TracedResult gradient = {};   // after the call, if it is changed

  Node& node(const Tensors& arguments) const {
    return *(argument == kNowhere ? tensor : arguments[argument]).impl()->node;
  }
};

struct Traced {
  CallKey key;
  Ref<GraphState> graph;  // owns the nodes
  std::vector<TracedLeaf> leaves = {};
  std::vector<TracedResult> results = {};
  std::uint64_t draws = 0;
  Trace::Dependences dependences = {};
  std::unique_ptr<SessionVariables> variables = {};  // none: parameters are captured
  std::optional<Program> program = {};  // until it runs; none if there is nothing to compute
  std::optional<Executable> executable = {};

  bool is_for(const CallKey& wanted, const Tensors& arguments) const {
    return key == wanted &&
           std::ranges::all_of(dependences, [](const auto& state) { return state.holds(); }) &&
           std::ranges::all_of(leaves, [&](const TracedLeaf& leaf) {
             return !leaf.is_read ||
                    leaf.node(arguments).extra->tensor.defined() == leaf.has_gradient;
           });
  }
  void take_back() noexcept {
    for (const auto& state : dependences) state.take_back();
  }
};

// One trace of the function, while it is made.
class Tracer {
 public:
  // `device` may still be unknown: then the function tells it.
  Tracer(const CallKey& key, const Tensors& arguments, const std::optional<Device>& device);
  ~Tracer();

  void run(const CompiledCalls::Function& function);
  // Device of the function, once it has run: the host if nothing tells another.
  Device device() const { return trace_->known_device().value_or(Device::cpu()); }
  // Plans it and ends the trace.
  std::unique_ptr<Traced> finish(const CompileOptions& options);

 private:
  void feed(const Tensor& placeholder, const Shape& shape) { fed_.push_back({placeholder, shape}); }
  std::size_t fetch(const Tensor& tensor) {
    fetches_.push_back(tensor);
    return fetches_.size() - 1;
  }
  // Whether eager would have given the result a history that leads to a leaf.
  bool has_history(const Tensor& result);
  void find_fetches();
  void find_leaves();
  // Throws Error if the program still holds a tensor that the function has made.
  void require_none_left() const;

  const Tensors& arguments_;
  std::unique_ptr<Traced> traced_;
  std::unique_ptr<Trace> trace_;
  Tensors symbolic_, results_, fetches_;
  Tensor draws_;
  FedShapes fed_;
};

}  // namespace ebb::detail
