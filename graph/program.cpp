#include "ebb/graph/program.h"

#include <algorithm>
#include <limits>

#include "ebb/core/error.h"
#include "ebb/graph/placement.h"

namespace ebb::detail {

namespace {

using memory::Category;
constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

// A piece of the arena while the program is made: values that are views of one another, or that
// took its memory over, share it.
struct ArenaBuffer {
  std::size_t bytes = 0;  // not rounded
  std::size_t first = kNever, last = 0;
  Category category = Category::temporary;
  std::int64_t fetch = -1;  // becomes this fetched tensor
};

class ProgramMaker {
 public:
  ProgramMaker(GraphState& graph, const Runtime& runtime, const ProgramOptions& options)
      : graph_(graph), runtime_(runtime), options_(options) {}

  Program make(const Tensors& fetches, const FedShapes& shapes) {
    check(fetches, shapes);
    prune(fetches);
    infer();
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i)
      if (needed_[i]) assign(i);
    settle_fetches(fetches);
    share_memory();
    lay_out();
    return std::move(program_);
  }

 private:
  using Places = InlineVector<Place, 2>;

  static std::string quoted(const Node& node) { return "'" + node.extra->name + "'"; }

  void check(const Tensors& fetches, const FedShapes& shapes) {
    if (fetches.empty()) throw Error("[run] nothing to fetch");
    for (const Tensor& fetch : fetches)
      if (!graph_.owns(fetch))
        throw Error("[run] a fetch is not a tensor of this graph: " + fetch.to_string());
    for (const FedShape& fed : shapes) {
      if (!graph_.owns(fed.placeholder) || fed.placeholder.impl()->node->op != &placeholder_op)
        throw Error("[run] only placeholders of this graph can be fed, not " +
                    fed.placeholder.to_string());
      const Node* node = fed.placeholder.impl()->node.get();
      if (std::find(program_.feeds.begin(), program_.feeds.end(), node) != program_.feeds.end())
        throw Error("[run] placeholder " + quoted(*node) + " is fed twice");
      const Spec& declared = node->outputs[0].spec;
      bool fits = declared.shape.rank() == fed.shape.rank() && !fed.shape.is_open();
      for (int axis = 0; fits && axis < fed.shape.rank(); ++axis)
        fits = declared.shape.dim(axis) == kOpen || declared.shape.dim(axis) == fed.shape[axis];
      if (!fits)
        throw ShapeError(message("run",
                                 "placeholder " + quoted(*node) + " is " + declared.to_string() +
                                     " and cannot be fed with shape " + fed.shape.to_string(),
                                 node->site));
      program_.feeds.push_back(node);
      program_.feed_specs.push_back({declared.dtype, fed.shape});
    }
  }

  // Marks what the fetches need: to run (`needed_`), or at least to know the shape of (`reached_`).
  void prune(const Tensors& fetches) {
    needed_.assign(graph_.nodes().size(), false);
    read_.assign(graph_.nodes().size(), 0);
    reached_.assign(graph_.nodes().size(), false);
    for (const Tensor& fetch : fetches) {
      const std::size_t producer = graph_.position(fetch.impl()->node.get());
      needed_[producer] = true;
      read_[producer] |= bit(static_cast<int>(fetch.impl()->output));
    }
    // Inputs come before what uses them, so one sweep from the end finds all ancestors.
    for (std::size_t i = graph_.nodes().size(); i-- > 0;) {
      const Node& node = *graph_.nodes()[i];
      if (needed_[i]) reached_[i] = true;
      if (!reached_[i]) continue;
      for (std::size_t j = 0; j < node.inputs.size(); ++j) {
        const std::size_t producer = graph_.position(node.inputs[j].producer.get());
        reached_[producer] = true;
        const bool only_shape = (node.op->shape_only & bit(static_cast<int>(j))) != 0;
        // with_updates and its kind order themselves after inputs whose values they do not read.
        if (needed_[i] && (!only_shape || node.op->stateful)) needed_[producer] = true;
        if (needed_[i] && !only_shape)
          read_[producer] |= bit(static_cast<int>(node.inputs[j].output));
      }
    }
  }

  // Shape rules once more, now that every dimension is known.
  void infer() {
    specs_.resize(graph_.nodes().size());
    for (std::size_t i = 0; i < graph_.nodes().size(); ++i) {
      if (!reached_[i]) continue;
      const Node& node = *graph_.nodes()[i];
      if (node.op == &placeholder_op) {
        const auto fed = std::find(program_.feeds.begin(), program_.feeds.end(), &node);
        if (fed == program_.feeds.end())
          throw Error(message("run", "placeholder " + quoted(node) + " is not fed", node.site));
        specs_[i] = {program_.feed_specs[static_cast<std::size_t>(fed - program_.feeds.begin())]};
      } else if (!node.op->infer) {
        specs_[i] = {node.outputs[0].spec};
      } else {
        const Specs in = input_specs(node);
        Inference inference{
            *node.op, {in.data(), in.size()}, node.attributes, node.site, specs_[i]};
        node.op->infer(inference);
      }
    }
  }

  Specs input_specs(const Node& node) const {
    Specs in;
    for (const Node::Source& source : node.inputs)
      in.push_back(specs_[graph_.position(source.producer.get())][source.output]);
    return in;
  }

  Place place_of(const Node::Source& source) const {
    const std::size_t producer = graph_.position(source.producer.get());
    return needed_[producer] ? places_.at(producer)[source.output] : Place{};
  }

  template <class T>
  static std::uint32_t index_in(std::vector<T>& list, const T& value) {
    const auto at = std::find(list.begin(), list.end(), value);
    if (at != list.end()) return static_cast<std::uint32_t>(at - list.begin());
    list.push_back(value);
    return static_cast<std::uint32_t>(list.size() - 1);
  }

  // Gives each output of node i a place, and makes it a step unless it computes nothing.
  void assign(std::size_t i) {
    const Node& node = *graph_.nodes()[i];
    places_.resize(graph_.nodes().size());
    Places& places = places_[i];
    if (node.op == &placeholder_op) {
      const auto fed = std::find(program_.feeds.begin(), program_.feeds.end(), &node);
      places.push_back({Place::feed, static_cast<std::uint32_t>(fed - program_.feeds.begin())});
    } else if (node.op == &variable_op) {
      const auto index =
          static_cast<std::uint32_t>(node.attributes.get<VariableAttributes>().index);
      index_in(program_.variables, index);
      places.push_back({Place::variable, index});
    } else if (node.op == &captured_op) {
      places.push_back({Place::captured, index_in(program_.captured, &node)});
    } else {
      assign_step(i, node, places);
    }
  }

  void assign_step(std::size_t i, const Node& node, Places& places) {
    const Specs in = input_specs(node);
    Specs& out = specs_[i];
    const MemoryQuery query{{in.data(), in.size()}, {out.data(), out.size()}, &node.attributes};
    const bool identity = options_.passes && node.op->is_identity && node.op->is_identity(query);
    if (node.op->view || identity) {
      Place place = place_of(node.inputs[0]);
      if (node.op->view) place.offset += node.op->view(query);
      places.push_back(place);
      return;
    }
    const DeviceKernel& kernel = runtime_.kernel(*node.op);
    const MemoryNeeds needs = kernel.memory ? kernel.memory(query) : MemoryNeeds{};
    const std::size_t now = program_.steps.size();
    Step step{.node = &node, .run = kernel.run};
    step.first_value = static_cast<std::uint32_t>(program_.values.size());
    step.inputs = static_cast<std::uint32_t>(node.inputs.size());
    for (std::size_t j = 0; j < node.inputs.size(); ++j) {
      const bool only_shape = (node.op->shape_only & bit(static_cast<int>(j))) != 0;
      const Place place = only_shape ? Place{} : place_of(node.inputs[j]);
      use(place, now, node.category);
      program_.values.push_back({place, in[j]});
      if (!(node.op->updates & bit(static_cast<int>(j)))) continue;
      if (place.kind == Place::feed)
        throw Error(message(node.op->name, "a placeholder cannot be updated in place", node.site));
      if (place.kind == Place::captured) index_in(program_.updated_captured, place.index);
    }
    step.outputs = static_cast<std::uint32_t>(out.size());
    for (std::size_t k = 0; k < out.size(); ++k) {
      Place place;
      if (k == 0 && node.op->updates) {
        place = place_of(node.inputs[0]);
      } else {
        if (out[k].shape.is_open())
          out[k].shape = Shape{static_cast<std::int64_t>(needs.reserve_bytes)};
        // What only a gradient would read is left out where there is none.
        const Mask mine = bit(static_cast<int>(k));
        const bool left_out = (node.op->optional_outputs & ~read_[i] & mine) != 0;
        if (out[k].bytes() > 0 && !left_out)
          place = {Place::arena, new_buffer(out[k].bytes(), now, node.category)};
      }
      places.push_back(place);
      program_.values.push_back({place, out[k]});
    }
    if (needs.workspace_bytes)
      step.workspace =
          static_cast<std::int32_t>(new_buffer(needs.workspace_bytes, now, Category::workspace));
    program_.plan.workspace_bytes = std::max(program_.plan.workspace_bytes, needs.workspace_bytes);
    program_.steps.push_back(step);
  }

  std::uint32_t new_buffer(std::size_t bytes, std::size_t now, Category category) {
    buffers_.push_back({bytes, now, now, category});
    return static_cast<std::uint32_t>(buffers_.size() - 1);
  }

  void use(const Place& place, std::size_t now, Category user) {
    if (place.kind != Place::arena) return;
    ArenaBuffer& buffer = buffers_[place.index];
    buffer.last = std::max(buffer.last, now);
    // What the backward pass reads of the forward pass is an activation.
    if (user == Category::gradient && buffer.category == Category::temporary)
      buffer.category = Category::activation;
  }

  // A fetched value that fills a buffer of its own is computed straight into the caller's tensor;
  // any other is copied at the end.
  void settle_fetches(const Tensors& fetches) {
    for (std::size_t f = 0; f < fetches.size(); ++f) {
      const TensorImpl& impl = *fetches[f].impl();
      const std::size_t producer = graph_.position(impl.node.get());
      const Spec& spec = specs_[producer][impl.output];
      const Place place = places_[producer][impl.output];
      Fetch fetch{spec, place};
      if (place.kind == Place::arena) {
        ArenaBuffer& buffer = buffers_[place.index];
        buffer.last = program_.steps.size();  // read once more, after the last step
        if (place.offset == 0 && buffer.bytes == spec.bytes() && buffer.fetch < 0) {
          buffer.fetch = static_cast<std::int64_t>(f);
          fetch.copied_from = {};
        }
      }
      program_.fetches.push_back(fetch);
    }
  }

  // Lets an output take over the memory of an input that nobody reads again. In the order of the
  // program, so that a chain of takeovers ends in one buffer.
  void share_memory() {
    owner_.resize(buffers_.size());
    for (std::uint32_t b = 0; b < buffers_.size(); ++b) owner_[b] = b;
    if (!options_.passes) return;
    for (std::size_t now = 0; now < program_.steps.size(); ++now) {
      const Step& step = program_.steps[now];
      const OpDef& op = *step.node->op;
      if (!op.takes_over || op.updates) continue;
      const Value& output = program_.values[step.first_value + step.inputs];
      if (output.place.kind != Place::arena || buffers_[output.place.index].fetch >= 0) continue;
      for (std::uint32_t j = 0; j < step.inputs; ++j) {
        const Value& input = program_.values[step.first_value + j];
        if (!(op.takes_over & bit(static_cast<int>(j))) || input.place.kind != Place::arena)
          continue;
        const std::uint32_t owner = owner_[input.place.index];
        ArenaBuffer& from = buffers_[owner];
        ArenaBuffer& to = buffers_[output.place.index];
        if (from.fetch >= 0 || from.last != now || from.bytes != to.bytes || input.place.offset)
          continue;
        if (reads_twice(step, owner, j)) continue;
        from.last = to.last;
        if (from.category == Category::temporary) from.category = to.category;
        owner_[output.place.index] = owner;
        break;
      }
    }
  }

  // Whether the step reads the buffer through another input than j as well.
  bool reads_twice(const Step& step, std::uint32_t owner, std::uint32_t j) const {
    for (std::uint32_t k = 0; k < step.inputs; ++k) {
      const Place& place = program_.values[step.first_value + k].place;
      if (k != j && place.kind == Place::arena && owner_[place.index] == owner) return true;
    }
    return false;
  }

  void lay_out() {
    const memory::Profile& profile = runtime_.profile();
    std::vector<BufferLife> lives;
    std::vector<std::uint32_t> placed_buffers;
    for (std::uint32_t b = 0; b < buffers_.size(); ++b) {
      if (owner_[b] != b || buffers_[b].fetch >= 0) continue;
      lives.push_back({buffers_[b].first, buffers_[b].last, profile.rounded(buffers_[b].bytes)});
      placed_buffers.push_back(b);
    }
    const Placed placed = place(lives);
    program_.arena_offsets.assign(buffers_.size(), 0);
    for (std::size_t i = 0; i < placed_buffers.size(); ++i)
      program_.arena_offsets[placed_buffers[i]] = placed.offsets[i];
    for (std::uint32_t b = 0; b < buffers_.size(); ++b)
      program_.arena_offsets[b] = program_.arena_offsets[owner_[b]];
    for (std::size_t i = 0; i < lives.size(); ++i)
      program_.arena_lives.push_back(
          {placed.offsets[i], lives[i].bytes, lives[i].first, lives[i].last});
    std::stable_sort(program_.arena_lives.begin(), program_.arena_lives.end(),
                     [](const ArenaLife& a, const ArenaLife& b) { return a.last < b.last; });
    for (Value& value : program_.values) redirect(value.place);
    for (Fetch& fetch : program_.fetches) redirect(fetch.copied_from);
    account(lives, placed_buffers, placed);
  }

  // Values in a buffer that became a fetched tensor live there.
  void redirect(Place& place) const {
    if (place.kind != Place::arena) return;
    const ArenaBuffer& buffer = buffers_[owner_[place.index]];
    if (buffer.fetch >= 0) {
      place.kind = Place::fetch;
      place.index = static_cast<std::uint32_t>(buffer.fetch);
    }
  }

  void account(const std::vector<BufferLife>& lives, const std::vector<std::uint32_t>& ids,
               const Placed& placed) {
    const memory::Profile& profile = runtime_.profile();
    memory::Plan& plan = program_.plan;
    for (const VariableDeclaration& variable : graph_.variables()) {
      const std::size_t bytes = profile.rounded(variable.spec.bytes());
      const bool parameter = variable.category == Category::parameter;
      (parameter ? plan.parameter_bytes : plan.optimizer_state_bytes) += bytes;
      plan.by_category[static_cast<std::size_t>(variable.category)] += bytes;
    }
    const std::size_t held = plan.parameter_bytes + plan.optimizer_state_bytes;
    plan.arena_bytes = placed.total_bytes;
    plan.peak_bytes = held + plan.feed_bytes + plan.arena_bytes;
    plan.lower_bound_bytes = held + plan.feed_bytes + placed.lower_bound_bytes;
    plan.naive_bytes = held + plan.feed_bytes;
    for (const ArenaBuffer& buffer : buffers_)
      if (buffer.fetch < 0) plan.naive_bytes += profile.rounded(buffer.bytes);
    const auto paged = [&](std::size_t bytes) {
      return (bytes + profile.page_bytes - 1) / profile.page_bytes * profile.page_bytes;
    };
    plan.reserved_bytes = paged(held) + paged(plan.arena_bytes);
    plan.nodes = program_.steps.size();

    for (std::size_t i = 0; i < lives.size(); ++i)
      if (lives[i].first <= placed.peak_step && placed.peak_step <= lives[i].last)
        plan.arena_by_category[static_cast<std::size_t>(buffers_[ids[i]].category)] +=
            lives[i].bytes;
    plan.arena_by_category[static_cast<std::size_t>(Category::temporary)] +=
        placed.total_bytes - placed.lower_bound_bytes;
    for (std::size_t i = 0; i < memory::kCategoryCount; ++i)
      plan.by_category[i] += plan.arena_by_category[i];
    if (placed.peak_step < program_.steps.size()) {
      const Node& node = *program_.steps[placed.peak_step].node;
      plan.peak_node = std::string(node.op->name) + " (" + node.site.file + ":" +
                       std::to_string(node.site.line) + ")";
    }
  }

  GraphState& graph_;
  const Runtime& runtime_;
  const ProgramOptions options_;
  Program program_;
  std::vector<bool> needed_, reached_;
  std::vector<Mask> read_;      // by node: its outputs whose values somebody reads
  std::vector<Specs> specs_;    // by node
  std::vector<Places> places_;  // by node
  std::vector<ArenaBuffer> buffers_;
  std::vector<std::uint32_t> owner_;  // the buffer whose memory each has taken over, at last
};

}  // namespace

Program make_program(GraphState& graph, const Tensors& fetches, const FedShapes& shapes,
                     const Runtime& runtime, const ProgramOptions& options) {
  return ProgramMaker(graph, runtime, options).make(fetches, shapes);
}

}  // namespace ebb::detail
