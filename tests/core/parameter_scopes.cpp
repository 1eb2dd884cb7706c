// Scopes as handles to a part of a set, untrained state, and copies between sets.
#include <algorithm>

#include "ebb/core/base/error.h"
#include "ebb/core/files/safetensors.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/fill.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/core/random/random.h"
#include "ebb/graph/graph.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/names.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/line.h"
#include "ebb/tests/uniform.h"

namespace ebb::tests {
namespace {

using Names = std::vector<std::string>;

Names names_in(const std::string& file) {
  const safetensors::File opened(file);
  Names names;
  for (const safetensors::File::Entry& entry : opened.entries()) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  return names;
}

// "a.w", "a.b", "ab.w", "w", state "a.mean"; slots of optimizers over all and over "a".
Parameters model(Seed seed) {
  const Parameters p(Device::cpu(), seed);
  p.scope("a").declare("w", {3}, kUniform);
  p.scope("ab").declare("w", {3}, kUniform);
  p.declare("w", {3}, kUniform);
  p.scope("a").declare("b", {2}, kUniform);
  p.scope("a").state("mean", {2});
  return p;
}

void add_slots(const Parameters& p) {
  const Spec three{DType::f32, {3}}, count{DType::i64, {}};
  const std::vector<SlotRequest> requests = {{"a.w/adam.m", three},
                                             {"ab.w/adam.m", three},
                                             {"adam/step", count},
                                             {"a.w/a.adam.m", three},
                                             {"a.adam/step", count}};
  p.find_or_make_slots(requests, {});
}

void fill(const std::vector<Parameters::Entry>& entries, double value) {
  for (const Parameters::Entry& entry : entries) {
    const Tensor tensor = entry.tensor.detach();
    assign(tensor, Tensor::full(tensor.shape(), value, tensor.dtype()));
  }
}

std::vector<Tensor> copies(const Parameters& p) {
  std::vector<Tensor> all;
  for (const auto* list : {&p.entries(), &p.states(), &p.slots()})
    for (const Parameters::Entry& entry : *list) all.push_back(entry.tensor.clone());
  return all;
}

bool equal(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), bit_equal);
}

}  // namespace

TEST_CASE("a scope lists, counts and finds what is below it, and nothing else", "[scope]") {
  const Parameters p = model(Seed{1});
  const Parameters a = p.scope("a");
  CHECK(names(a.entries()) == Names{"a.w", "a.b"});
  CHECK(names(a.states()) == Names{"a.mean"});
  CHECK(names(p.scope("ab").entries()) == Names{"ab.w"});
  CHECK(names(p.entries()) == Names{"a.w", "ab.w", "w", "a.b"});
  CHECK(a.count() == 5);
  CHECK(p.count() == 11);
  CHECK(p.scope("none").entries().empty());
  CHECK(a["w"].impl() == p["a.w"].impl());
  CHECK(a["mean"].impl() == p["a.mean"].impl());
  CHECK(a.contains("b"));
  CHECK_FALSE(a.contains("a.b"));
  CHECK_FALSE(p.contains("b"));
  CHECK_ERROR(a["x"], Error, "there is no \"a.x\"; below \"a.\" there are w, b, mean");
  CHECK(a.prefix() == "a.");
  CHECK(a.scope("c").prefix() == "a.c.");
  CHECK(names(a.root().entries()) == names(p.entries()));

  // The list of a scope grows with later declarations and stays the same object.
  const std::vector<Parameters::Entry>& list = a.entries();
  p.declare("z", {1}, kUniform);
  a.scope("c").declare("w", {1}, kUniform);
  CHECK(names(a.entries()) == Names{"a.w", "a.b", "a.c.w"});
  CHECK(&list == &a.entries());

  add_slots(p);
  CHECK(names(a.slots()) == Names{"a.w/adam.m", "a.w/a.adam.m", "a.adam/step"});
  CHECK(a["adam/step"].impl() == p["a.adam/step"].impl());
  for (const Parameters& part : {p, a, a.scope("c")})
    for (const auto* entries : {&part.entries(), &part.states(), &part.slots()})
      for (const Parameters::Entry& entry : *entries) {
        const auto& [name, tensor] = entry;
        CHECK(part.prefix() + entry.local() == name);
        CHECK(part[entry.local()].impl() == tensor.impl());
      }
  p.drop_slots_after(3);
  CHECK(names(a.slots()) == Names{"a.w/adam.m"});
}

TEST_CASE("slots beside parameters are found without their names being made again", "[scope]") {
  const Parameters p = model(Seed{1});
  const std::vector<SlotBeside> columns = {{"x.m", DType::f32}, {"x.v", DType::f64}};
  const std::vector<std::size_t> second = {1}, both = {1, 0};
  const Tensors made = p.scope("a").find_or_make_slots({second, columns}, {}, {});
  CHECK(names(p.slots()) == Names{"a.b/x.m", "a.b/x.v"});
  CHECK(made[0].shape() == Shape{2});
  CHECK(made[0].dtype() == DType::f32);
  CHECK(made[1].dtype() == DType::f64);
  const std::vector<SlotRequest> count = {{"x/step", {DType::i64, {}}}};
  const Tensors found = p.scope("a").find_or_make_slots({both, columns}, count, {});
  CHECK(found.size() == 5);
  CHECK(found[0].impl() == made[0].impl());
  CHECK(found[1].impl() == made[1].impl());
  CHECK(found[2].impl() == p["a.w/x.m"].impl());
  CHECK(found[4].impl() == p["x/step"].impl());
  const std::vector<SlotBeside> narrow = {{"x.v", DType::f32}};
  CHECK_ERROR(p.scope("a").find_or_make_slots({second, narrow}, {}), Error,
              "the slot \"a.b/x.v\" is f64[2], but f32[2] is wanted");
  // Dropped slots are made anew.
  p.drop_slots_after(0);
  const Tensors again = p.scope("a").find_or_make_slots({second, columns}, {}, {});
  CHECK(names(p.slots()) == Names{"a.b/x.m", "a.b/x.v"});
  CHECK(again[0].impl() == p["a.b/x.m"].impl());
  const std::vector<SlotRequest> twice = {count[0], count[0]};
  CHECK_ERROR(p.find_or_make_slots(twice, {}), Error, "\"x/step\" is asked for twice");
  CHECK(p.slots().size() == 2);
}

TEST_CASE("zero_grad of a scope frees its gradients alone", "[scope]") {
  const Parameters p = model(Seed{1});
  (sum(p["a.w"]) + sum(p["w"])).backward();
  p.scope("a").zero_grad();
  CHECK_FALSE(p["a.w"].grad().defined());
  CHECK(p["w"].grad().defined());
  CHECK_ERROR(p.scope("aa").zero_grad(), Error,
              "[zero_grad] there are no parameters whose names begin with \"aa.\"; the scopes");
  CHECK_NOTHROW(Parameters(Device::cpu()).zero_grad());
}

TEST_CASE("state belongs to the model, counts as parameter and has no history", "[scope]") {
  const auto parameter_bytes = [] {
    return memory::stats(Device::cpu())
        .by_category[static_cast<std::size_t>(memory::Category::parameter)]
        .current;
  };
  const std::size_t before = parameter_bytes();
  const Parameters p(Device::cpu(), Seed{1});
  const Tensor w = p.declare("w", {2}, initializers::constant(3));
  const Tensor mean = p.state("mean", {2}, initializers::constant(1));
  const Tensor runs = p.state("runs", {}, initializers::zeros(), DType::i64);
  CHECK(parameter_bytes() - before == 3 * 512);
  CHECK(names(p.entries()) == Names{"w"});
  CHECK(names(p.states()) == Names{"mean", "runs"});
  CHECK(p.count() == 2);
  CHECK(runs.dtype() == DType::i64);
  CHECK_FALSE(mean.requires_grad());
  // A running mean is updated in place before the gradient has gone through w.
  const Tensor loss = sum(square(w));
  assign(mean, mean * 0.5 + w.detach() * 0.5);
  loss.backward();
  CHECK(values_of(mean) == std::vector<double>{2, 2});
  CHECK(values_of(w.grad()) == std::vector<double>{6, 6});

  CHECK_ERROR(p.state("w", {2}), Error, "there is a parameter \"w\" already");
  CHECK_ERROR(p.declare("mean", {2}, kUniform), Error, "there is a parameter \"mean\" already");
  CHECK_ERROR(p.state("a/b", {2}), Error, "cannot name a parameter");
  CHECK_ERROR(p.state("n", {}, initializers::constant(1), DType::i64), Error,
              "only floating ones start at other values than zero");
  Graph graph;
  CHECK_ERROR(Parameters(graph).state("n", {}, initializers::constant(1), DType::i64), Error,
              "[parameters] \"n\" is i64[]: only floating ones start at other values");
  CHECK(p.states().size() == 2);
}

TEST_CASE("copy_from copies values and state by name, below two handles", "[scope]") {
  const Parameters online = model(Seed{1}), target = model(Seed{2});
  add_slots(target);
  fill(target.slots(), 4);
  fill(online.states(), 7);
  const Tensor w = target["a.w"];
  const Tensor loss = sum(square(w));
  target.copy_from(online);
  CHECK(target["a.w"].impl() == w.impl());
  CHECK_ERROR(loss.backward(), Error, "");  // w has changed since
  for (const char* name : {"a.w", "ab.w", "w", "a.b", "a.mean"})
    CHECK(bit_equal(target[name], online[name]));
  CHECK(values_of(target["a.w/adam.m"]) == std::vector<double>(3, 4));

  // Names are relative to the scopes: "average.w" is copied from "a.w".
  const Parameters average(Device::cpu(), Seed{3});
  const Parameters part = average.scope("average");
  part.state("w", {3});
  part.state("b", {2});
  part.declare("mean", {2}, kUniform);
  const Tensor online_before = online["a.w"].clone();
  part.copy_from(online.scope("a"));
  CHECK(bit_equal(average["average.w"], online["a.w"]));
  CHECK(bit_equal(average["average.mean"], online["a.mean"]));
  CHECK(bit_equal(online["a.w"], online_before));
}

TEST_CASE("copy_from of sets that differ names the first difference and writes nothing",
          "[scope]") {
  const Parameters from = model(Seed{1});
  const auto refuses = [&](const Parameters& to, const Parameters& other, const char* text) {
    const std::vector<Tensor> before = copies(to);
    CHECK_ERROR(to.copy_from(other), Error, text);
    CHECK(equal(copies(to), before));
  };
  const Parameters more = model(Seed{2}), less(Device::cpu(), Seed{2}), other(Device::cpu());
  more.declare("last", {1}, kUniform);
  refuses(more, from, "there is no \"last\" to go with \"last\"");
  refuses(from, more, "there is no \"last\" to go with \"last\"");
  other.declare("w", {3}, kUniform);
  other.declare("b", {2}, kUniform);
  other.state("mean", {3});
  refuses(other, from.scope("a"), "\"mean\" is f32[3] here, but f32[2] in the others");
  less.scope("x").declare("w", {3}, kUniform);
  refuses(less.scope("x"), from.scope("a"), "there is no \"x.b\" to go with \"a.b\"");
  const Parameters stateless(Device::cpu());
  stateless.declare("w", {3}, kUniform);
  stateless.declare("b", {2}, kUniform);
  refuses(stateless, from.scope("a"), "there is no \"mean\" to go with \"a.mean\"");
  const Parameters wide(Device::cpu(), Seed{1}, DType::f64);
  wide.declare("w", {3}, kUniform);
  refuses(wide, from.scope("ab"), "is f64[3] here");
  const Parameters elsewhere(Device::cpu().twin());
  elsewhere.declare("w", {3}, kUniform);
  CHECK_ERROR(from.scope("ab").copy_from(elsewhere), Error, "the others on");
  Graph graph;
  const Parameters symbolic(graph);
  CHECK_ERROR(symbolic.copy_from(from), Error, "each Session");
  CHECK_ERROR(from.copy_from(symbolic), Error, "each Session");
}

TEST_CASE("a scope saves its part under full names, and no random state", "[scope]") {
  const TemporaryFolder folder;
  const Parameters p = model(Seed{1});
  add_slots(p);
  p.scope("a").save(folder.path("a"));
  CHECK(names_in(folder.path("a")) ==
        Names{"a.adam/step", "a.b", "a.mean", "a.w", "a.w/a.adam.m", "a.w/adam.m"});
  set_seed(Seed{5});
  uniform({3});
  const auto here = detail::generator();
  model(Seed{2}).scope("a").load(folder.path("a"));
  CHECK(detail::generator().key == here.key);
  CHECK(detail::generator().counter == here.counter);

  p.save(folder.path("all"));
  uniform({3});
  const auto later = detail::generator();
  model(Seed{2}).scope("a").load(folder.path("all"));
  CHECK(detail::generator().counter == later.counter);
  model(Seed{2}).load(folder.path("all"));
  CHECK(detail::generator().counter == here.counter);
}

TEST_CASE("a scope loads its part of any file and leaves the rest alone", "[scope]") {
  const TemporaryFolder folder;
  const Parameters saved = model(Seed{1});
  add_slots(saved);
  fill(saved.slots(), 5);
  fill(saved.states(), 6);
  saved.save(folder.path("f"));

  const Parameters p = model(Seed{2});
  const Tensor other = p["ab.w"].clone(), w = p["w"].clone();
  p.scope("a").load(folder.path("f"));
  for (const char* name : {"a.w", "a.b", "a.mean", "a.w/adam.m", "a.w/a.adam.m", "a.adam/step"}) {
    CAPTURE(name);
    CHECK(bit_equal(p[name], saved[name]));
  }
  CHECK(p.slots().size() == 3);
  CHECK(bit_equal(p["ab.w"], other));
  CHECK(bit_equal(p["w"], w));

  // A load without slots leaves existing slots alone and makes none.
  const Parameters q = model(Seed{3});
  q.find_or_make_slots(std::vector<SlotRequest>{{"a.w/adam.m", {DType::f32, {3}}}}, {});
  fill(q.slots(), 2);
  q.load(folder.path("f"), {.slots = false});
  CHECK(bit_equal(q["a.w"], saved["a.w"]));
  CHECK(q.slots().size() == 1);
  CHECK(values_of(q["a.w/adam.m"]) == std::vector<double>(3, 2));

  // Slots inside the scope that the file lacks become zero; slots outside it stay.
  const Parameters r = model(Seed{4});
  r.find_or_make_slots(
      std::vector<SlotRequest>{{"a.b/new.m", {DType::f32, {2}}}, {"w/new.m", {DType::f32, {3}}}},
      {});
  fill(r.slots(), 2);
  r.scope("a").load(folder.path("f"));
  CHECK(values_of(r["a.b/new.m"]) == std::vector<double>{0, 0});
  CHECK(values_of(r["w/new.m"]) == std::vector<double>{2, 2, 2});

  // A model that has one part only loads that part. Counts of optimizers over other parts stay in
  // the file.
  const Parameters part(Device::cpu(), Seed{5});
  part.scope("ab").declare("w", {3}, kUniform);
  part.load(folder.path("f"));
  CHECK(bit_equal(part["ab.w"], saved["ab.w"]));
  CHECK(names(part.slots()) == Names{"ab.w/adam.m", "adam/step"});
}

TEST_CASE("a part that does not fit is refused with nothing changed", "[scope]") {
  const TemporaryFolder folder;
  const Parameters saved(Device::cpu(), Seed{1});
  saved.scope("a").declare("w", {3}, kUniform);
  saved.scope("a").declare("b", {2}, kUniform);
  saved.find_or_make_slots(std::vector<SlotRequest>{{"a.w/adam.m", {DType::f64, {3}}}}, {});
  saved.save(folder.path("f"));
  const Parameters p = model(Seed{2});
  add_slots(p);
  const std::vector<Tensor> before = copies(p);
  CHECK_ERROR(p.scope("a").load(folder.path("f")), FileError, "no parameter \"a.mean\"");
  CHECK_ERROR(p.scope("ab").load(folder.path("f")), FileError, "no parameter \"ab.w\"");
  const Parameters q(Device::cpu(), Seed{2});
  q.scope("a").declare("w", {3}, kUniform);
  q.find_or_make_slots(std::vector<SlotRequest>{{"a.w/adam.m", {DType::f32, {3}}}}, {});
  const std::vector<Tensor> q_before = copies(q);
  CHECK_ERROR(q.load(folder.path("f")), FileError, "\"a.w/adam.m\" is f64[3]");
  CHECK(equal(copies(p), before));
  CHECK(equal(copies(q), q_before));
}

TEST_CASE("a set's name begins all its names", "[scope]") {
  const TemporaryFolder folder;
  const Parameters p(Device::cpu(), Seed{1}, {.dtype = DType::f64, .name = "teacher"});
  const Tensor w = p.scope("a").declare("w", {3}, kUniform);
  CHECK(w.dtype() == DType::f64);
  CHECK(names(p.entries()) == Names{"teacher.a.w"});
  CHECK(p["a.w"].impl() == w.impl());
  CHECK(p.scope("a").root().prefix() == "teacher.");
  p.save(folder.path("f"));
  CHECK(names_in(folder.path("f")) == Names{"teacher.a.w"});
  // A scope of that name reads the same file.
  const Parameters scoped = Parameters(Device::cpu(), Seed{2}, DType::f64).scope("teacher");
  scoped.scope("a").declare("w", {3}, kUniform);
  scoped.load(folder.path("f"));
  CHECK(bit_equal(scoped["a.w"], w));
  CHECK_ERROR(Parameters(Device::cpu(), {}, {.name = "a/b"}), Error, "cannot name a set");
}

TEST_CASE("What no set can be is refused with the line of the call") {
  const Parameters p(Device::cpu());
  CHECK_ERROR_HERE(p.scope(""), Error,
                   "[scope] \"\" cannot name a scope: it is empty or has a '/' ");
  CHECK_ERROR(p.scope(std::string("a/b")), Error, line(__LINE__));
  CHECK_ERROR(Parameters(Device::cpu(), {}, {.name = "a/b"}), Error, line(__LINE__));
  CHECK_ERROR(Parameters(Device::cpu(), {}, DType::i32), Error, line(__LINE__));
  Graph graph;
  CHECK_ERROR(Parameters(graph, {}, DType::i32), Error, line(__LINE__));
  CHECK_ERROR(Parameters(graph).device(), Error, line(__LINE__));
}

}  // namespace ebb::tests
