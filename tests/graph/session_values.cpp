// Values of a session: state and slots that start by themselves, copies, files and parts of them.
// What restore and initialize refuse changes nothing.
#include <atomic>
#include <thread>

#include "ebb/core/files/input_file.h"
#include "ebb/core/files/safetensors.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/graph/data_limit.h"
#include "ebb/tests/uniform.h"

namespace ebb::tests {
namespace {

void declare(const Parameters& p) {
  p.scope("a").declare("w", {3}, kUniform);
  p.scope("a").state("mean", {2});
  p.scope("b").declare("w", {3}, kUniform);
  p.find_or_make_slots(std::vector<SlotRequest>{{p.prefix() + "a.w/m.v", {DType::f32, {3}}},
                                                {p.prefix() + "b.w/m.v", {DType::f32, {3}}}},
                       {});
}

struct NamedModel {
  explicit NamedModel(Seed seed, const std::string& name = "")
      : parameters(graph, seed, {.name = name}) {
    declare(parameters);
  }
  Tensor operator[](std::string_view name) { return session.value(parameters[name]); }
  void set(std::string_view name, double value) {
    const Tensor variable = parameters[name];
    session.assign(variable, Tensor::full(variable.shape(), value, variable.dtype()));
  }

  Graph graph;
  const Parameters parameters;
  Session session{graph};
};

const std::vector<std::string> kValues = {"a.w", "a.mean", "b.w"};
const std::vector<std::string> kAll = {"a.w", "a.mean", "b.w", "a.w/m.v", "b.w/m.v"};

using Values = std::vector<std::vector<float>>;

// The values of kAll.
Values all_of(NamedModel& model) {
  Values values;
  for (const std::string& name : kAll) values.push_back(model[name].to_vector<float>());
  return values;
}

using Specs = std::vector<std::pair<std::string, Spec>>;
const Spec k3{DType::f32, {3}}, k2{DType::f32, {2}};

// Writes a file of tensors filled with 7; returns its path.
std::string write(const TemporaryFolder& folder, const Specs& all) {
  const std::vector<float> sevens(64, 7);
  std::vector<safetensors::View> views;
  for (const auto& [name, spec] : all) views.push_back({name, spec, sevens.data()});
  safetensors::write(folder.path("file"), views);
  return folder.path("file");
}

}  // namespace

TEST_CASE("a value or a fetch that a program keeps says on which line it was asked for",
          "[session]") {
  NamedModel model(Seed{1});
  model.session.initialize();
  const Tensor kept = model.session.value(model.parameters["a.w"]);
  const unsigned line = __builtin_LINE() - 1;
  const Tensor twice = model.parameters["a.w"] * 2;
  const Tensor fetched = model.session.run(twice);  // of the line that computes it
  int found = 0;
  for (const memory::Holder& holder : memory::holders(Device::cpu(), 10'000)) {
    const bool is_value =
        holder.tag.operator_name == std::string("session value") && holder.tag.line == line;
    const bool is_fetch =
        holder.tag.operator_name == std::string("fetch") && holder.tag.line == line + 2;
    found += (is_value || is_fetch) && holder.tag.file == std::string(__FILE__);
  }
  CHECK(found == 2);
}

TEST_CASE("a session initialises a scope alone; slots are zero by themselves", "[session]") {
  NamedModel model(Seed{1});
  CHECK(values_of(model["a.w/m.v"]) == std::vector<double>(3, 0));
  CHECK_ERROR(model["a.w"], Error, "has no value");
  model.set("b.w/m.v", 2);
  model.session.initialize(model.parameters.scope("a"));
  CHECK(values_of(model["a.mean"]) == std::vector<double>(2, 0));
  CHECK_ERROR(model["b.w"], Error, "has no value");
  model.session.initialize(model.parameters.scope("b"));
  CHECK(values_of(model["b.w/m.v"]) == std::vector<double>(3, 0));
  const Parameters eager(Device::cpu(), Seed{1});
  declare(eager);
  for (const std::string& name : kValues) CHECK(bit_equal(model[name], eager[name]));
}

TEST_CASE("a session copies from eager parameters, and within its graph", "[session]") {
  const Parameters eager(Device::cpu(), Seed{7});
  declare(eager);
  assign(eager["a.mean"], 4);
  assign(eager["a.w/m.v"], 4);
  NamedModel model(Seed{1});
  model.set("a.w/m.v", 9);
  model.session.copy_from(eager, model.parameters);
  for (const std::string& name : kValues) CHECK(bit_equal(model[name], eager[name]));
  CHECK(values_of(model["a.w/m.v"]) == std::vector<double>(3, 9));

  // A target network in the same graph copies the online one.
  const Parameters target(model.graph, Seed{2}, {.name = "target"});
  declare(target);
  model.session.copy_from(model.parameters, target);
  model.set("b.w", 1);
  CHECK(bit_equal(model.session.value(target["a.w"]), eager["a.w"]));
  CHECK(bit_equal(model.session.value(target["b.w"]), eager["b.w"]));
  model.session.copy_from(model.parameters.scope("b"), target.scope("b"));
  CHECK(values_of(model.session.value(target["b.w"])) == std::vector<double>(3, 1));
}

TEST_CASE("a session copies from another's, by handles or by full names", "[session]") {
  NamedModel one(Seed{1}), two(Seed{2}), named(Seed{3}, "x");
  one.session.initialize();
  two.session.initialize();
  one.set("a.mean", 3);
  one.set("b.w/m.v", 3);
  two.session.copy_from(one.session);
  for (const std::string& name : kValues) CHECK(bit_equal(two[name], one[name]));
  CHECK(values_of(two["b.w/m.v"]) == std::vector<double>(3, 0));
  named.session.copy_from(one.session, one.parameters, named.parameters);
  for (const std::string& name : kValues) CHECK(bit_equal(named[name], one[name]));

  // Copies between two sessions of one graph.
  Session second(one.graph);
  second.copy_from(one.session);
  CHECK(bit_equal(second.value(one.parameters["a.w"]), one["a.w"]));
  // A copy from itself changes nothing.
  const Tensor before = one["a.w"];
  one.session.copy_from(one.session);
  CHECK(bit_equal(one["a.w"], before));
}

TEST_CASE(
    "two threads that copy between two sessions to and fro do not wait for each other for ever",
    "[session][concurrent]") {
  NamedModel one(Seed{1}), two(Seed{2});
  std::atomic<int> ready = 0;
  const auto copy = [&](NamedModel& to, const NamedModel& from) {
    ++ready;
    while (ready < 2) std::this_thread::yield();
    for (int i = 0; i < 20'000; ++i) to.session.copy_from(from.session);
  };
  for (NamedModel* each : {&one, &two}) each->session.initialize();
  std::thread other([&] { copy(two, one); });
  copy(one, two);
  other.join();
  CHECK(bit_equal(one["a.w"], two["a.w"]));
}

TEST_CASE("a session's copy that does not fit writes nothing", "[session]") {
  NamedModel one(Seed{1}), two(Seed{2});
  two.session.initialize();
  const auto refuses = [&](const auto& copy, const char* text) {
    std::vector<Tensor> before;
    for (const std::string& name : kAll) before.push_back(two[name]);
    CHECK_ERROR(copy(), Error, text);
    for (std::size_t i = 0; i < kAll.size(); ++i) CHECK(bit_equal(two[kAll[i]], before[i]));
  };
  one.session.initialize(one.parameters.scope("a"));
  refuses([&] { two.session.copy_from(one.session); }, "'b.w' has no value");
  refuses([&] { two.session.copy_from(one.session, one.parameters, two.parameters); },
          "'b.w' has no value");
  const Parameters eager(Device::cpu(), Seed{7});
  eager.scope("a").declare("w", {3}, kUniform);
  refuses([&] { two.session.copy_from(eager, two.parameters); },
          "there is no \"b.w\" to go with \"b.w\"");
  const Parameters more(Device::cpu(), Seed{7});
  declare(more);
  more.declare("c", {1}, kUniform);
  refuses([&] { two.session.copy_from(more, two.parameters); },
          "there is no \"c\" to go with \"c\"");
  eager.scope("a").state("mean", {3});
  refuses([&] { two.session.copy_from(eager.scope("a"), two.parameters.scope("a")); },
          "'a.mean' is f32[2] here, but f32[3] in the others");
  refuses([&] { two.session.copy_from(eager, eager); }, "of this session's graph");
  Graph graph;
  Session empty(graph);
  refuses([&] { two.session.copy_from(empty); }, "has no 'a.w'");
  empty.close();
  CHECK_THROWS_AS(two.session.copy_from(empty), SessionClosed);
  const Parameters twin(two.graph, Seed{3});
  twin.scope("a").declare("w", {3}, kUniform);
  refuses([&] { two.session.copy_from(one.session); }, "two sets of Parameters have a 'a.w'");
}

TEST_CASE("a session copies from no substitutes, which may have no values", "[session][with]") {
  NamedModel one(Seed{1}), two(Seed{2});
  one.session.initialize();
  two.session.initialize();
  const Parameters eager(Device::cpu(), Seed{7});
  declare(eager);
  const Tensor before = two["a.w"];
  const auto refuses = [&](const Parameters& from, const Tensors& substitutes) {
    const Parameters other = from.with(substitutes);
    const auto copy = [&] {
      if (from.is_symbolic()) return two.session.copy_from(one.session, other, two.parameters);
      two.session.copy_from(other, two.parameters);
    };
    CHECK_ERROR(copy(), Error, "[copy_from] these parameters are substitutes");
    CHECK(bit_equal(two["a.w"], before));
  };
  const Tensor fed = one.graph.placeholder("fed", DType::f32, {3});
  refuses(eager, {fed, fed});
  refuses(eager, eager.tensors());
  refuses(one.parameters, one.parameters.tensors());
}

TEST_CASE("a session saves and restores a part", "[session]") {
  const TemporaryFolder folder;
  NamedModel saved(Seed{1});
  saved.session.initialize();
  saved.set("a.mean", 3);
  saved.set("a.w/m.v", 4);
  saved.session.save(folder.path("all"));
  saved.session.save(folder.path("part"), saved.parameters.scope("a"));
  CHECK(safetensors::File(folder.path("part")).entries().size() == 3);

  for (const char* file : {"all", "part"}) {
    CAPTURE(file);
    NamedModel model(Seed{2});
    model.set("b.w", 7);
    model.set("b.w/m.v", 7);
    model.session.restore(folder.path(file), model.parameters.scope("a"));
    for (const char* name : {"a.w", "a.mean", "a.w/m.v"})
      CHECK(bit_equal(model[name], saved[name]));
    CHECK(values_of(model["b.w"]) == std::vector<double>(3, 7));
    CHECK(values_of(model["b.w/m.v"]) == std::vector<double>(3, 7));

    NamedModel values_only(Seed{2});
    values_only.set("a.w/m.v", 8);
    values_only.session.restore(folder.path(file), values_only.parameters.scope("a"),
                                {.slots = false});
    CHECK(bit_equal(values_only["a.w"], saved["a.w"]));
    CHECK(values_of(values_only["a.w/m.v"]) == std::vector<double>(3, 8));
  }

  // Eager loads the part as well.
  const Parameters eager(Device::cpu(), Seed{3});
  declare(eager);
  eager.scope("a").load(folder.path("part"));
  CHECK(bit_equal(eager["a.w"], saved["a.w"]));
  CHECK(bit_equal(eager["a.w/m.v"], saved["a.w/m.v"]));

  NamedModel model(Seed{2});
  model.session.initialize();
  const Tensor before = model["a.w"];
  CHECK_ERROR(model.session.restore(folder.path("part")), FileError, "has no parameter 'b.w'");
  CHECK_ERROR(model.session.restore(folder.path("part"), saved.parameters), Error,
              "of this session's graph");
  CHECK(bit_equal(model["a.w"], before));
  NamedModel fresh(Seed{2});
  CHECK_ERROR(fresh.session.save(folder.path("none"), fresh.parameters.scope("a")), Error,
              "has no value");
  CHECK(folder.count() == 2);
}

TEST_CASE("restore takes what the file has and zeroes the slots that it lacks", "[session]") {
  const TemporaryFolder folder;
  NamedModel model(Seed{4}), fresh(Seed{4});
  const std::string file =
      write(folder, {{"a.w", k3}, {"a.mean", k2}, {"b.w", k3}, {"b.w/m.v", k3}, {"unknown", k3}});
  model.session.initialize();
  model.set("a.w/m.v", 10);
  for (NamedModel* each : {&model, &fresh}) {  // variables need no value before
    each->session.restore(file);
    CHECK(all_of(*each) == Values{{7, 7, 7}, {7, 7}, {7, 7, 7}, {0, 0, 0}, {7, 7, 7}});
  }
}

TEST_CASE("restore refuses a file without a parameter or with another shape, and changes nothing",
          "[session]") {
  const TemporaryFolder folder;
  NamedModel model(Seed{4});
  model.session.initialize();
  const Values before = all_of(model);
  const auto refuses = [&](const Specs& all, const char* why) {
    CHECK_ERROR(model.session.restore(write(folder, all)), FileError, why);
    CHECK(all_of(model) == before);
  };
  refuses({{"a.w", k3}, {"a.mean", k2}}, "has no parameter 'b.w'");
  refuses({{"a.w", k3}, {"a.mean", k2}, {"b.w/m.v", k3}}, "has no parameter 'b.w'");
  refuses({{"a.w", k3}, {"a.mean", k2}, {"b.w", k2}}, "'b.w' is f32[3] in the graph and f32[2]");
  refuses({{"a.w", k3}, {"a.mean", k2}, {"b.w", {DType::i32, {3}}}},
          "'b.w' is f32[3] in the graph and i32[3]");
  refuses({{"a.w", k3}, {"a.mean", k2}, {"b.w", k3}, {"b.w/m.v", {DType::f32, {1, 3}}}},
          "'b.w/m.v' is f32[3]");
  CHECK_ERROR(model.session.restore(folder.path("none")), FileError, "none");
  CHECK(all_of(model) == before);
}

TEST_CASE("restore changes nothing, whichever read of the file fails", "[session]") {
  const TemporaryFolder folder;
  const std::string file =
      write(folder, {{"a.w", k3}, {"a.mean", k2}, {"b.w", k3}, {"a.w/m.v", k3}, {"b.w/m.v", k3}});
  std::size_t failures = 0;
  for (bool failed = true; failed; ++failures) {
    NamedModel model(Seed{4});
    model.session.initialize();
    const Values before = all_of(model);
    detail::fail_read_after(failures);
    INFO("read " << failures);
    try {
      model.session.restore(file);
      failed = false;
    } catch (const FileError&) {
    }
    detail::fail_read_after({});
    CHECK(all_of(model) ==
          (failed ? before : Values{{7, 7, 7}, {7, 7}, {7, 7, 7}, {7, 7, 7}, {7, 7, 7}}));
  }
  CHECK(failures > 4);  // the header's reads, and one for each tensor at least
}

TEST_CASE("a refused initialize changes nothing", "[session]") {
  const NamedModel other(Seed{4});
  const Parameters eager(Device::cpu());
  declare(eager);
  for (const Parameters& refused : {other.parameters, eager}) {
    NamedModel model(Seed{4}), fresh(Seed{4});
    model.session.initialize();
    const Values before = all_of(model);
    CHECK_ERROR(model.session.initialize(refused), Error, "this session's graph");
    CHECK(all_of(model) == before);
    CHECK_ERROR(fresh.session.initialize(refused), Error, "this session's graph");
    CHECK_ERROR(fresh["a.w"], Error, "has no value");
  }
}

TEST_CASE("a checkpoint that the host has no room to copy is refused in either mode, by its type") {
  if (!DataLimit::can_be_tried()) return;
  const TemporaryFolder folder;
  const std::string file = folder.path("file");
  const Shape shape{8 << 20};
  Graph graph;
  const Parameters symbolic(graph), eager(Device::cpu());
  const Tensor here = symbolic.declare("w", shape, initializers::constant(1));
  const Tensor there = eager.declare("w", shape, initializers::constant(2));
  Session session(graph);
  session.initialize();
  eager.save(file);
  const auto last = [&](const Tensor& tensor) { return tensor.to_vector<float>().back(); };
  eager.load(file);
  {
    const DataLimit limit(24u << 20);
    CHECK_ERROR(session.restore(file), OutOfMemory, "a copy of a checkpoint's values");
    CHECK_ERROR(eager.load(file), OutOfMemory, "a copy of a checkpoint's values");
  }
  CHECK(last(session.value(here)) == 1);
  CHECK(last(there) == 2);
  session.restore(file);
  CHECK(last(session.value(here)) == 2);
}

TEST_CASE("state in a graph is updated by a run, and an average follows the parameters",
          "[session]") {
  Graph graph;
  const Parameters p(graph, Seed{1});
  const Tensor w = p.declare("w", {2}, initializers::constant(1));
  const Tensor average = p.state("average", {2}, initializers::constant(1));
  const Tensor runs = p.state("runs", {}, initializers::zeros());
  const Tensor moved = assign(w, w + 4);
  const Tensor follow = assign(average, average * 0.75 + moved * 0.25);
  const Tensor counted = add_assign(runs, 1);
  Session session(graph);
  session.initialize(p);
  session.run(Tensors{follow, counted});
  CHECK(values_of(session.value(average)) == std::vector<double>{2, 2});
  session.run(Tensors{follow, counted});
  CHECK(values_of(session.value(average)) == std::vector<double>{3.75, 3.75});
  CHECK(values_of(session.value(runs)) == std::vector<double>{2});
  CHECK(p.entries().size() == 1);
}

}  // namespace ebb::tests
