// A program that is written once and run eagerly, as a graph, or compiled.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ebb/core/ops/update.h"
#include "ebb/graph/compile.h"
#include "ebb/graph/session.h"

namespace ebb::tests {

class InMode {
 public:
  using Function = std::function<Tensors(const Tensors&)>;
  enum Kind { eager, graph, compiled };

  explicit InMode(Kind kind, DType dtype = DType::f32, Seed seed = {1},
                  const SessionOptions& options = {},
                  const std::optional<distributed::World>& world = {})
      : InMode(kind == graph, dtype, seed, options, world) {
    if (kind == compiled)
      compiles_ = CompileOptions{.budget = options.budget, .passes = options.passes};
  }

  explicit InMode(bool as_graph, DType dtype = DType::f32, Seed seed = {1},
                  const SessionOptions& options = {},
                  const std::optional<distributed::World>& world = {})
      : parameters(as_graph ? Parameters(graph_, seed, {.dtype = dtype, .world = world})
                            : Parameters(options.device, seed, {.dtype = dtype, .world = world})) {
    if (as_graph) session_.emplace(graph_, options);
  }
  InMode(const InMode&) = delete;
  InMode& operator=(const InMode&) = delete;

  // Returns `body`, or in a graph a run of what it has recorded on placeholders of these specs;
  // prepared: by Session::prepare, of two inputs.
  Function function(const std::vector<Spec>& inputs, const Function& body, bool prepared = false) {
    if (compiles_)
      return [step = compile(body, *compiles_)](const Tensors& values) { return step(values); };
    if (!session_) return body;
    Tensors placeholders;
    for (const Spec& input : inputs)
      placeholders.push_back(
          graph_.placeholder("input" + std::to_string(graph_.size()), input.dtype, input.shape));
    const Tensors fetches = body(placeholders);
    if (prepared)
      return [step = std::make_shared<PreparedSteps<std::dynamic_extent>>(
                  session().prepare(fetches, placeholders))](const Tensors& values) {
        return (*step)(values[0], values[1]);
      };
    return [this, placeholders, fetches](const Tensors& values) {
      Feeds feeds;
      for (std::size_t i = 0; i < placeholders.size(); ++i)
        feeds.push_back({placeholders[i], values[i]});
      return session().run(fetches, feeds);
    };
  }
  Function function(const std::function<Tensor()>& body) {
    return function({}, [body](const Tensors&) -> Tensors { return {body()}; });
  }

  // A parameter, state or slot: itself, or a session's copy.
  Tensor operator[](std::string_view name) {
    return session_ ? session().value(parameters[name]) : parameters[name];
  }
  // Parameters, state and slots by name.
  std::map<std::string, Tensor> values() {
    std::map<std::string, Tensor> values;
    for (const auto* list : {&parameters.entries(), &parameters.states(), &parameters.slots()})
      for (const auto& [name, tensor] : *list)
        values[name] = session_ ? session().value(tensor) : tensor.clone();
    return values;
  }
  void assign(std::string_view name, const Tensor& value) {
    session_ ? session().assign(parameters[name], value)
             : static_cast<void>(ebb::assign(parameters[name], value));
  }
  template <class... Loader>  // none, or a DataLoader whose position is in the file
  void load(const std::string& file, Loader&... loader) {
    session_ ? session().restore(file, loader...) : parameters.load(file, loader...);
  }
  template <class... Loader>
  void save(const std::string& file, Loader&... loader) {
    session_ ? session().save(file, loader...) : parameters.save(file, loader...);
  }

  const Graph& recorded() const { return graph_; }
  memory::Plan plan(const Tensors& fetches, const FedShapes& shapes) const {
    return graph_.plan(fetches, shapes, session_->device());
  }
  // The graph's session, initialized on its first use.
  Session& session() {
    if (!std::exchange(is_initialized_, true)) session_->initialize();
    return *session_;
  }

 private:
  Graph graph_;
  std::optional<Session> session_;
  std::optional<CompileOptions> compiles_;
  bool is_initialized_ = false;

 public:
  Parameters parameters;
};

}  // namespace ebb::tests
