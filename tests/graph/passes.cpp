// Each pass by itself, on small graphs, checked by the draft it leaves.
#include "ebb/graph/passes/passes.h"
#include "ebb/ebb.h"

#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

using namespace ebb::detail;

struct Small {
  Graph graph;
  Tensor x = graph.placeholder("x", DType::f32, {-1, 2});
  Parameters p{graph};
  Tensor w = p.declare("w", {2}, initializers::constant(1));

  // Runs the passes up to add_dependencies().
  Draft draft(const Tensors& fetches, bool simplified = true) const {
    Draft made = prune(graph.state(), Device::cpu().runtime(), fetches);
    infer(made, {{x, {3, 2}}});
    if (simplified) simplify(made);
    resolve(made);
    add_dependencies(made);
    return made;
  }
};

std::vector<std::string> names(const Draft& draft, const std::vector<Index>& order) {
  std::vector<std::string> list;
  for (const Index step : order) list.emplace_back(draft.steps[step].node->op->name);
  return list;
}

std::vector<std::string> in_order(const Draft& draft, bool updates_early = false) {
  return names(draft, order(draft, updates_early).order);
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("prune keeps what fetches need, of some nodes the shape alone") {
  Small s;
  const Tensor used = tanh(s.x), unused = exp(s.x), shaped = square(s.x);
  const Tensor sized = rows(shaped);
  const Draft draft = prune(s.graph.state(), Device::cpu().runtime(), {used, sized});
  const auto runs = [&](const Tensor& tensor) {
    const Index at = draft.index_of(*tensor.impl()->node);
    return at != kNone && draft.nodes[at].runs;
  };
  CHECK(runs(used));
  CHECK(runs(sized));
  CHECK_FALSE(runs(shaped));
  CHECK(draft.of_position[unused.impl()->node->number] == kNone);
}

TEST_CASE("prune takes the updates of an intermediate with it, and those of a variable not") {
  Small s;
  const Tensor h = s.x * 2;
  add_assign(h, 1);
  const Tensor h_after = h * 3;
  add_assign(s.w, 1);
  const Tensor w_after = s.w * 3;
  CHECK(in_order(s.draft({h_after})) == Names{"multiply", "fill_like", "add_assign", "multiply"});
  CHECK(in_order(s.draft({w_after})) == Names{"multiply"});
}

TEST_CASE("who reads but the size of an intermediate does not make its updates run") {
  Small s;
  const Tensor h = s.x * 2;
  add_assign(h, 1);
  CHECK(in_order(s.draft({rows(h)})).size() == 1);
}

TEST_CASE("only updates of state are hurried, not those of intermediates") {
  Small s;
  const Tensor h = s.x * 2, by = tanh(s.x), heavy = exp(s.x);
  add_assign(h, by);
  CHECK(in_order(s.draft({heavy, h * 3}), true) ==
        Names{"multiply", "tanh", "exp", "add_assign", "multiply"});
}

TEST_CASE("simplify drops what changes nothing, unless something is written to either") {
  Small s;
  const Tensor same = sum_like(s.x * 2, s.x);
  CHECK(in_order(s.draft({same * 3})) == Names{"multiply", "multiply"});
  CHECK(in_order(s.draft({same * 3}, false)) == Names{"multiply", "sum_like", "multiply"});
  CHECK(in_order(s.draft({tanh(1 * (s.x * 1 / 1 - 0))})) == Names{"tanh"});
  CHECK(in_order(s.draft({s.x + 0, s.x - -0.0})) == Names{"add", "subtract"});  // not of -0
  const Tensor row = sum_like(s.w, s.w.detach());
  const Tensor wide = sum(reshape(s.w, {2, 1}), {.axes = {1}, .keep = true});
  const Tensor up = assign(s.w, 3);
  CHECK(in_order(s.draft({wide * 3})) == Names{"multiply"});
  CHECK(in_order(s.draft({wide * 3, up})) == Names{"sum", "fill_like", "assign", "multiply"});
}

TEST_CASE("fold computes constants of one number, unless something is written to them", "[host]") {
  Small s;
  bool is_gradient = false;
  const auto folded = [&](const Tensors& fetches) {
    Draft made = prune(s.graph.state(), Device::cpu().runtime(), fetches);
    infer(made, {{s.x, {3, 2}}});
    fold(made);
    resolve(made);
    add_dependencies(made);
    is_gradient = std::ranges::any_of(made.memories, [](const DraftMemory& memory) {
      return memory.category == memory::Category::gradient;
    });
    return in_order(made);
  };
  const Tensor one = ones_like(s.x), three = reshape(one * 2, {2, -1}) + full(s.graph, {}, 1);
  CHECK(folded({three, one}) == Names{"fill_like", "full"});
  CHECK(folded({gradients(mean(tanh(s.x)), {s.x})[0]}) ==
        Names{"tanh", "full", "square", "subtract", "multiply"});
  CHECK(folded({gradients(mean(s.x), {s.x})[0]}) == Names{"full"});
  CHECK(is_gradient);
  CHECK(folded({s.x * (one - 1)}) == Names{"full", "multiply"});
  // Some are no number of a double's.
  const Tensor large = full(s.graph, {2}, 0x1p53, DType::i64) + 1;
  CHECK(folded({large}) == Names{"full", "add"});
  const Tensor written = one + 1;
  add_assign(written, 1);
  CHECK(folded({written * 2}) == Names{"fill_like", "add", "fill_like", "add_assign", "multiply"});
}

TEST_CASE("merge computes once what is written twice, unless a random, updated or later value") {
  Small s;
  const auto merged = [&](const Tensors& fetches) {
    Draft made = prune(s.graph.state(), Device::cpu().runtime(), fetches);
    infer(made, {{s.x, {3, 2}}});
    merge(made);
    resolve(made);
    return made.steps.size();
  };
  const Tensor x = s.x, flat = reshape(x * 2, {-1}), other = reshape(x * 2, {-1});
  CHECK(merged({tanh(flat) + tanh(other)}) == 3);  // of a product, a tanh and a sum
  CHECK(merged({tanh(x * 2) + tanh(x * 3)}) == 5);
  // A filled value is made again: keeping it would take memory.
  CHECK(merged({tanh(x * ones_like(x)) + tanh(x * ones_like(x))}) == 5);
  // Each with a draw of its own, which its kernel makes.
  CHECK(merged({dropout(x, 0.5, Phase::training) + dropout(x, 0.5, Phase::training)}) == 3);
  const Tensor before = tanh(s.w), up = assign(s.w, 3), after = tanh(s.w);
  CHECK(merged({before + after, up}) == 5);
  const Tensor a = x * 5, b = x * 5;
  add_assign(a, b);
  CHECK(merged({a + b}) == 4);
}

TEST_CASE(
    "dependencies make reads wait for the update that made their version, and updates for reads") {
  Small s;
  const Tensor before = s.w * 2;     // 0
  const Tensor up = assign(s.w, 3);  // 1: fill_like, 2: assign
  const Tensor after = s.w * 4;      // 3
  const Draft draft = s.draft({before, up, after});
  REQUIRE(draft.steps.size() == 4);
  CHECK(draft.inputs_of(draft.steps[0])[0].version == 0);
  CHECK(draft.inputs_of(draft.steps[3])[0].version == 1);
  const auto waits = [&](Index from) {
    return std::vector<Index>(draft.edges.begin() + draft.first_edge[from],
                              draft.edges.begin() + draft.first_edge[from + 1]);
  };
  CHECK(waits(0) == std::vector<Index>{2});
  CHECK(waits(1) == std::vector<Index>{2});
  CHECK(waits(2) == std::vector<Index>{3});
  CHECK(waits(3).empty());
}

TEST_CASE("order is that of the program, but for a read of an older version") {
  Small s;
  const Tensor y = square(s.w), up = assign(s.w, 3);
  const Tensor dw = gradients(sum(y), {s.w})[0];
  const Draft draft = s.draft({dw, up});
  const std::vector<std::string> order = in_order(draft);
  // The gradient's 2 w, written last, reads the value that the assignment overwrites.
  const auto at = [&](const char* name) {
    return std::find(order.begin(), order.end(), name) - order.begin();
  };
  CHECK(at("multiply") < at("assign"));
}

TEST_CASE("updates run early with the scalars that they alone wait for") {
  Small s;
  const Tensor v = s.p.declare("v", {8}, initializers::constant(1));
  const Tensor u = s.p.declare("u", {8}, initializers::constant(1));
  const Tensor n = s.p.state("n", {}, initializers::zeros(), DType::i64);
  const Tensor du = tanh(u), heavy = exp(s.x), read = v * 2;
  const Tensor ready = ebb::detail::at_least(n, 1);
  const Tensor cleared = ebb::detail::clear_if(v, ready);
  const Tensor up = add_assign(u, du);
  const Draft draft = s.draft({cleared, up, heavy, read});
  CHECK(in_order(draft, false) ==
        Names{"tanh", "exp", "multiply", "at_least", "clear_if", "add_assign"});
  CHECK(in_order(draft, true) ==
        Names{"tanh", "at_least", "add_assign", "exp", "multiply", "clear_if"});
}

TEST_CASE(
    "assign takes over what is read last and all of it, nothing else, and nothing when told") {
  Small s;
  const Tensor a = s.x * 2, b = a + s.w;                 // b may live in a
  const Tensor row = slice(tanh(b), 0, 1), c = row + b;  // row is a part, b is read once more
  const Tensor part = sqrt(slice(exp(b), 0, 1));         // as large as the part that it reads
  const Tensor whole = log(b), less = whole - slice(whole, 0, 1);  // reads a part once more
  const Draft draft = s.draft({sum(c) + sum(b) + sum(part) + sum(less)});
  for (const bool share : {true, false}) {
    Schedule schedule = order(draft, false);
    lay_out(draft, schedule, share);
    const auto owner_of = [&](const char* name) {
      for (Index step = 0; step < draft.steps.size(); ++step)
        if (draft.steps[step].node->op->name == std::string(name)) {
          const Index memory = draft.outputs_of(draft.steps[step])[0].value.memory;
          return schedule.owners[memory] == memory ? -1 : static_cast<int>(schedule.owners[memory]);
        }
      return -2;
    };
    CHECK((owner_of("add") >= 0) == share);
    for (const char* own : {"tanh", "sqrt", "subtract"}) CHECK(owner_of(own) == -1);
  }
}

}  // namespace ebb::tests
