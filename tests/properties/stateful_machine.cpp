#include "ebb/tests/properties/stateful_machine.h"
#include "ebb/ebb.h"

#include <algorithm>
#include <random>
#include <unordered_set>

#include "ebb/core/tensor/tensor_impl.h"

namespace ebb::tests {

namespace {

Shape shape_of(const StatefulProgram& program, int value) {
  return program.values[at(value)].shape;
}

// Optimizers have a large epsilon, so that the last bits of a gradient near zero do not decide the
// step.
optim::Optimizer optimizer_of(const Line& line) {
  switch (line.end) {
    case 0:
      return optim::Sgd({.learning_rate = 0.05});
    case 1:
      return optim::Sgd({.learning_rate = 0.05, .momentum = 0.9});
    case 2:
      return optim::Adam({.learning_rate = 0.02, .epsilon = 0.1});
    case 3:
      return optim::AdamW({.learning_rate = 0.02, .epsilon = 0.1, .weight_decay = 0.1});
    case 4:
      return optim::Sgd({.learning_rate = 0.02, .name = "slow"});
    default:
      return optim::Adam({.learning_rate = 0.01, .epsilon = 0.1, .name = "slow"});
  }
}

Parameters scope_of(const Line& line, const Parameters& parameters) {
  return line.begin == 2 ? parameters : parameters.scope(line.begin == 0 ? "a" : "b");
}

Tensor view_of(const Line& line, const Tensor& a) {
  switch (line.variant % 4) {
    case 0:
      return slice(a, line.begin, line.end);
    case 1:
      return reshape(a, line.shape);
    case 2:
      return a.detach();
    default:
      return flatten(a);
  }
}

Tensor loss_of(const Line& line, const Tensor& a, const Tensor& parameter) {
  const auto reduced = [&] {
    switch (line.variant % 4) {
      case 0:
        return sum(square(a));
      case 1:
        return mean(tanh(a));
      case 2:
        return sum(a);
      default:
        return mean(square(a));
    }
  };
  return parameter.defined() ? reduced() + sum(square(parameter)) : reduced();
}

bool assigns(const Line& line) { return line.variant % 2 == 0; }

Tensors parameters_in(const Parameters& scope) {
  Tensors tensors;
  for (const Parameters::Entry& entry : scope.entries()) tensors.push_back(entry.tensor);
  return tensors;
}

}  // namespace

void declare(const StatefulProgram& program, const Parameters& parameters) {
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const StatefulInput& input = program.inputs[i];
    const Initializer initial = initializers::uniform(-1, 1);
    const Shape& shape = program.values[i].shape;
    if (input.kind == StatefulInput::parameter) parameters.declare(input.name, shape, initial);
    if (input.kind == StatefulInput::state) parameters.state(input.name, shape, initial);
  }
}

Tensor draw_input(const StatefulProgram& program, int input, int run, const Device& device) {
  std::mt19937_64 random(program.seed * 1000 + static_cast<std::uint64_t>(input * 10 + run));
  const Shape shape = shape_of(program, input);
  std::vector<float> values(at(shape.elements()));
  for (float& value : values) value = std::uniform_real_distribution<float>(-1, 1)(random);
  const Tensor tensor = Tensor::from(values, shape, device);
  return program.inputs[at(input)].leaf ? tensor.with_grad() : tensor;
}

Tensor compute(const Line& line, const Tensor& a, const Tensor& b) {
  const double c = line.constant;
  const int axis = static_cast<int>(line.begin);
  const int v = line.variant;
  switch (line.kind) {
    case Line::unary:
      switch (v % 9) {
        case 1:
          return sigmoid(a);
        case 2:
          return relu(a);
        case 3:
          return square(a);
        case 4:
          return exp(tanh(a));
        case 5:
          return log(square(a) + 1.5);
        case 6:
          return -a;
        case 7:
          return sqrt(square(a) + 1);
        default:
          return tanh(a);
      }
    case Line::number:
      switch (v % 5) {
        case 0:
          return a + c;
        case 1:
          return c - a;
        case 2:
          return a * c;
        case 3:
          return a / 3;
        default:
          return c / (square(a) + 1);
      }
    case Line::binary:
      switch (v % 4) {
        case 0:
          return a + b;
        case 1:
          return a - b;
        case 2:
          return a * b;
        default:
          return a / (square(b) + 1);
      }
    case Line::product:
      switch (v % 4) {
        case 0:
          return matmul(a, b);
        case 1:
          return dense(a, b, static_cast<Activation>(v / 4 % 4));
        case 2:
          return matmul(a, b, {.transpose_b = true});
        default:
          return matmul(a, b, {.transpose_a = true});
      }
    case Line::reduce:
      switch (v % 5) {
        case 0:
          return sum(a, {.axes = {axis}, .keep = true});
        case 1:
          return mean(a, {.axes = {axis}, .keep = true});
        case 2:
          return sum(a, {.axes = {axis}});
        case 3:
          return mean(a, {.axes = {axis}});
        default:
          return select(a, axis, line.end);
      }
    case Line::like:
      switch (v % 3) {
        case 0:
          return fill_like(a, c);
        case 1:
          return sum_like(a, b);
        default:
          return copy(a);
      }
    default:  // expression
      switch (v % 5) {
        case 0:
          return slice(a * 2, 0, 1) + b;
        case 1:
          return tanh(a * 0.5 + b);
        case 2:
          return (a + b) * (a - b);
        case 3:
          return tanh(-(a + 1) * 0.5) * b;
        default:
          return reshape(reshape(a * 2, {-1}) + 1, a.shape()) - b;
      }
  }
}

void Direct::run(const Line& line) {
  const auto in = [&](std::size_t i) {
    return i < line.in.size() && line.in[i] >= 0 ? values_[at(line.in[i])] : Tensor();
  };
  const auto out = [&](std::size_t i) -> Tensor& { return values_[at(line.out[i])]; };
  switch (line.kind) {
    case Line::view:
      out(0) = view_of(line, in(0));
      return;
    case Line::update:
      if (line.in.size() < 2) {
        out(0) = assigns(line) ? assign(in(0), line.constant) : add_assign(in(0), line.constant);
      } else {
        const Tensor value = line.flag ? in(1).detach() : in(1);
        if (assigns(line) && line.variant % 4 == 0 && value.rank() > 0)
          out(0) = assign_slice(in(0), 0, value, {.axis = -1});  // all of it
        else
          out(0) = assigns(line) ? assign(in(0), value) : add_assign(in(0), value);
      }
      return;
    case Line::gradient: {
      Tensors targets;
      for (std::size_t i = 2; i < line.in.size(); ++i) targets.push_back(in(i));
      const Tensors found = gradients(loss_of(line, in(0), in(1)), targets,
                                      {.retain_graph = true, .create_graph = line.flag});
      for (std::size_t i = 0; i < found.size(); ++i)
        out(i) = line.flag ? found[i] : found[i].detach();
      return;
    }
    case Line::minimize:
      out(0) =
          optimizer_of(line).minimize(loss_of(line, in(0), in(1)), scope_of(line, parameters_));
      return;
    case Line::apply: {
      const Parameters scope = scope_of(line, parameters_);
      const Tensors found =
          gradients(loss_of(line, in(0), in(1)), parameters_in(scope), {.retain_graph = true});
      out(0) = optimizer_of(line).apply(found, scope);
      return;
    }
    case Line::recomputed: {
      Tensors captured(values_.size());  // only the values that the region reads
      for (const int v : line.in) captured[at(v)] = values_[at(v)];
      if (std::count(line.in.begin(), line.in.end(), line.in[0]) < 2)
        captured[at(line.in[0])] = Tensor();
      const auto region = [body = line.body, argument = line.out[1], parameters = parameters_,
                           values = captured](const Tensor& x) {
        Direct inside(parameters, values);
        inside.values_[at(argument)] = x;
        for (const Line& inner : body) inside.run(inner);
        return inside[body.back().out[0]];
      };
      out(0) = recompute(region, in(0));
      return;
    }
    default:
      out(0) = compute(line, in(0), in(1));
  }
}

Functional::Functional(const StatefulProgram& program, const Parameters& parameters)
    : program_(program), parameters_(parameters), memories_(program.memories.size()) {
  for (std::size_t i = 0; i < program.inputs.size(); ++i) {
    const StatefulInput& input = program.inputs[i];
    Memory& memory = memories_[at(program.values[i].memory)];
    if (input.kind == StatefulInput::feed || input.kind == StatefulInput::captured_view) continue;
    memory.is_state = true;
    memory.is_leaf = input.kind == StatefulInput::parameter || input.leaf;
    memory.whole = input.kind == StatefulInput::captured
                       ? draw_input(program, static_cast<int>(i), 0).clone()
                       : parameters[input.name].clone();
    if (memory.is_leaf) memory.whole = memory.whole.with_grad();
  }
}

void Functional::begin(int run) {
  handles_.assign(program_.values.size(), nullptr);
  overwritten_.clear();
  replaced_.clear();
  kept_.clear();
  for (Memory& memory : memories_) {
    memory.version = 0;
    if (!memory.is_state) memory.whole = Tensor();
    memory.leaves.assign(1, memory.whole);
  }
  for (int i = 0; i < static_cast<int>(program_.inputs.size()); ++i) {
    const StatefulInput& input = program_.inputs[at(i)];
    if (input.kind == StatefulInput::feed) {
      define(i, draw_input(program_, i, run));
    } else if (input.kind == StatefulInput::captured_view) {
      Line rows;
      rows.kind = Line::view;
      rows.begin = input.begin;
      rows.end = input.end;
      take_view(i, input.base, rows);
      handle(i).is_detached = true;
    } else {
      handles_[at(i)] = std::make_shared<Handle>();
      handle(i).memory = program_.values[at(i)].memory;
    }
  }
}

void Functional::define(int v, const Tensor& value) {
  auto made = std::make_shared<Handle>();
  made->memory = program_.values[at(v)].memory;
  made->version = 0;
  made->tensor = value;
  Memory& memory = memories_[at(made->memory)];
  memory.version = 0;
  memory.whole = reshape(value, {-1});
  handles_[at(v)] = std::move(made);
}

void Functional::take_view(int v, int parent, const Line& line) {
  auto made = std::make_shared<Handle>();
  const Handle& above = handle(parent);
  made->memory = above.memory;
  made->parent = parent;
  made->view = line;
  made->offset = above.offset;
  if (line.variant % 4 == 0) {
    const Shape shape = shape_of(program_, parent);
    made->offset += line.begin * (shape.elements() / shape[0]);
  }
  made->is_detached = above.is_detached || line.variant % 4 == 2;
  if (!memories_[at(made->memory)].is_state) {
    made->tensor = view_of(line, read(parent));
    made->version = memories_[at(made->memory)].version;
  }
  handles_[at(v)] = std::move(made);
}

Tensor Functional::read(int v) {
  Handle& h = handle(v);
  Memory& memory = memories_[at(h.memory)];
  if (h.version == memory.version) return h.tensor;
  if (memory.is_state) {
    Tensor now = h.parent < 0 ? memory.whole : view_of(h.view, read(h.parent));
    h.tensor = h.is_detached ? now.detach() : now;
    h.version = memory.version;
    h.incarnations.push_back(h.tensor);
    return h.tensor;
  }
  const Shape shape = shape_of(program_, v);
  const Tensor now = reshape(slice(memory.whole, h.offset, h.offset + shape.elements()), shape);
  if (!now.requires_grad() || (h.is_detached && !h.tensor.requires_grad())) return now.detach();
  const Tensor stand_in = now.clone().with_grad();
  overwritten_.emplace(stand_in.impl()->node.get(), now);
  kept_.push_back(stand_in);
  return stand_in;
}

void Functional::update(const Line& line) {
  const int v = line.in[0];
  const Tensor old = read(v);
  Tensor value = line.in.size() < 2 ? fill_like(old.detach(), line.constant) : read(line.in[1]);
  if (line.flag) value = value.detach();
  Tensor made = assigns(line) ? copy(value) : old + value;
  if (assigns(line) && old.requires_grad() && !memories_[at(handle(v).memory)].is_state) {
    // The overwritten value's history stays part of the new value's, though no gradient flows to
    // it.
    if (!made.requires_grad()) made = made.with_grad();
    replaced_.emplace(made.impl()->node.get(), old);
    kept_.push_back(made);
  }
  Handle& h = handle(v);
  Memory& memory = memories_[at(h.memory)];
  const Tensor whole = memory.is_state ? reshape(memory.whole.detach(), {-1}) : memory.whole;
  // Selects the replaced elements (`place`) and the other elements (`rest`).
  const std::int64_t all = whole.elements(), count = made.elements();
  std::vector<float> rest(at(all), 1), place(at(all * count), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    rest[at(h.offset + i)] = 0;
    place[at((h.offset + i) * count + i)] = 1;
  }
  const Tensor part = reshape(memory.is_state ? made.detach() : made, {count, 1});
  const Tensor replaced = whole * Tensor::from(rest, {all}) +
                          reshape(matmul(Tensor::from(place, {all, count}), part), {all});
  ++memory.version;
  if (memory.is_state) {
    memory.whole = reshape(replaced, memory.whole.shape()).clone();
    if (memory.is_leaf) memory.whole = memory.whole.with_grad();
    memory.leaves.push_back(memory.whole);
  } else {
    memory.whole = replaced;
    h.tensor = made;
    h.version = memory.version;
  }
  handles_[at(line.out[0])] = handles_[at(v)];
}

// Whether a gradient that arrives at `from` would reach one of these nodes, through stand-ins too.
bool Functional::leads(const Tensor& from, const std::vector<const void*>& to) const {
  std::unordered_set<const Node*> seen;
  std::vector<const Node*> open;
  const auto visit = [&](const Node* node) {
    if (node && seen.insert(node).second) open.push_back(node);
  };
  visit(from.impl()->node.get());
  while (!open.empty()) {
    const Node* node = open.back();
    open.pop_back();
    if (std::find(to.begin(), to.end(), node) != to.end()) return true;
    for (const Node::Source& source : node->inputs) visit(source.producer.get());
    for (const auto* map : {&overwritten_, &replaced_})
      if (const auto found = map->find(node); found != map->end())
        visit(found->second.impl()->node.get());
  }
  return false;
}

Tensors Functional::gradients_of(const Tensor& loss, const std::vector<int>& targets) {
  Tensors flat;
  std::vector<std::size_t> first;
  std::vector<const void*> nodes;
  for (const int v : targets) {
    first.push_back(flat.size());
    const Handle& h = handle(v);
    const Memory& memory = memories_[at(h.memory)];
    const std::vector<Tensor> one = {h.tensor};
    for (const Tensor& tensor : !memory.is_state ? one
                                : h.parent < 0   ? memory.leaves
                                                 : h.incarnations) {
      if (!tensor.defined() || !tensor.requires_grad()) continue;
      flat.push_back(tensor);
      nodes.push_back(tensor.impl()->node.get());
    }
  }
  first.push_back(flat.size());
  for (const auto& [stand_in, stands_for] : overwritten_)
    if (leads(loss, {stand_in}) && leads(stands_for, nodes)) throw OverwrittenHistory();
  // An update by a constant is part of the history in both modes, but leaves none here.
  if (!loss.requires_grad()) first.assign(first.size(), 0);
  const Tensors found = loss.requires_grad()
                            ? gradients(loss, flat, {.retain_graph = true, .create_graph = true})
                            : Tensors();
  Tensors sums;
  for (std::size_t t = 0; t < targets.size(); ++t) {
    Tensor total = first[t] < first[t + 1] ? found[first[t]] : fill_like(read(targets[t]), 0);
    for (std::size_t i = first[t] + 1; i < first[t + 1]; ++i) total = total + found[i];
    sums.push_back(total);
  }
  return sums;
}

// Lets the optimizer work on the newest versions, and makes its results the next versions.
void Functional::step(const Line& line) {
  const Tensor loss = loss_of(line, read(line.in[0]), line.in[1] < 0 ? Tensor() : read(line.in[1]));
  const Parameters scope = scope_of(line, parameters_);
  const std::vector<Parameters::Entry>& entries = scope.entries();
  std::vector<int> targets;
  for (const Parameters::Entry& entry : entries)
    for (int i = 0; i < static_cast<int>(program_.inputs.size()); ++i)
      if (program_.inputs[at(i)].name == entry.name) targets.push_back(i);
  Tensors found = gradients_of(loss, targets);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const Memory& memory = memories_[at(handle(targets[i]).memory)];
    std::vector<const void*> nodes;
    for (const Tensor& leaf : memory.leaves) nodes.push_back(leaf.impl()->node.get());
    if (line.kind == Line::minimize && !leads(loss, nodes)) found[i] = Tensor();
    if (found[i].defined()) found[i] = found[i].detach();
    assign(entries[i].tensor.detach(), memory.whole.detach());
  }
  const Tensor count = optimizer_of(line).apply(found, scope);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    if (!found[i].defined()) continue;
    Memory& memory = memories_[at(handle(targets[i]).memory)];
    memory.whole = entries[i].tensor.clone().with_grad();
    memory.leaves.push_back(memory.whole);
    ++memory.version;
  }
  auto made = std::make_shared<Handle>();
  made->memory = program_.values[at(line.out[0])].memory;
  made->version = 0;
  made->tensor = line.kind == Line::minimize ? loss.detach() : count;
  handles_[at(line.out[0])] = std::move(made);
}

void Functional::run(const Line& line) {
  switch (line.kind) {
    case Line::view:
      take_view(line.out[0], line.in[0], line);
      return;
    case Line::update:
      update(line);
      return;
    case Line::gradient: {
      const Tensor loss =
          loss_of(line, read(line.in[0]), line.in[1] < 0 ? Tensor() : read(line.in[1]));
      const Tensors found = gradients_of(loss, {line.in.begin() + 2, line.in.end()});
      for (std::size_t i = 0; i < found.size(); ++i)
        define(line.out[i], line.flag ? found[i] : found[i].detach());
      return;
    }
    case Line::minimize:
    case Line::apply:
      step(line);
      return;
    case Line::recomputed: {
      Line same;
      same.kind = Line::view;
      same.variant = 1;
      same.shape = shape_of(program_, line.in[0]);
      take_view(line.out[1], line.in[0], same);
      for (const Line& inner : line.body) run(inner);
      define(line.out[0], read(line.body.back().out[0]));
      return;
    }
    default: {
      const Tensor a = read(line.in[0]);
      define(line.out[0], compute(line, a, line.in.size() < 2 ? Tensor() : read(line.in[1])));
    }
  }
}

std::vector<Tensor> Functional::state() const {
  std::vector<Tensor> values;
  for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
    const StatefulInput::Kind kind = program_.inputs[i].kind;
    if (kind != StatefulInput::feed && kind != StatefulInput::captured_view)
      values.push_back(memories_[at(program_.values[i].memory)].whole);
  }
  return values;
}

}  // namespace ebb::tests
