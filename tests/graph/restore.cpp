// Session::restore and initialize change all of their variables, or nothing.
#include "ebb/core/base/error.h"
#include "ebb/core/files/input_file.h"
#include "ebb/core/files/safetensors.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/graph/data_limit.h"
#include "ebb/tests/graph/models.h"

namespace ebb::tests {
namespace {

using Values = std::vector<float>;

// A graph of two parameters with a slot each.
struct RestoredModel {
  RestoredModel() {
    const SlotRequest requests[] = {{"a/m", {DType::f32, {3}}}, {"b/m", {DType::f32, {2}}}};
    slots = parameters.find_or_make_slots(requests, {});
  }
  Tensors variables() const { return {a, b, slots[0], slots[1]}; }

  Graph graph;
  const Parameters parameters{graph, Seed{4}};
  const Tensor a = parameters.declare("a", {3}, initializers::constant(1));
  const Tensor b = parameters.declare("b", {2}, initializers::constant(2));
  Tensors slots;
};

Session trained(const RestoredModel& model) {
  Session session(model.graph);
  session.initialize();
  float next = 10;
  for (const Tensor& variable : model.variables())
    session.assign(variable, Tensor::full(variable.shape(), static_cast<double>(next++)));
  return session;
}

std::vector<Values> values_of(Session& session, const RestoredModel& model) {
  std::vector<Values> values;
  for (const Tensor& variable : model.variables())
    values.push_back(session.value(variable).to_vector<float>());
  return values;
}

// Writes a file of tensors filled with 7; returns its path.
std::string write(const TemporaryFolder& folder,
                  const std::vector<std::pair<std::string, Spec>>& all) {
  const Values sevens(64, 7);
  std::vector<safetensors::View> views;
  for (const auto& [name, spec] : all) views.push_back({name, spec, sevens.data()});
  safetensors::write(folder.path("file"), views);
  return folder.path("file");
}

const Spec kA{DType::f32, {3}}, kB{DType::f32, {2}};

}  // namespace

TEST_CASE("restore takes what the file has and zeroes the slots that it lacks") {
  const TemporaryFolder folder;
  const RestoredModel model;
  Session session = trained(model);
  session.restore(write(folder, {{"a", kA}, {"b", kB}, {"b/m", kB}, {"unknown", kA}}));
  CHECK(values_of(session, model) == std::vector<Values>{{7, 7, 7}, {7, 7}, {0, 0, 0}, {7, 7}});
  Session fresh(model.graph);  // variables need no value before
  fresh.restore(folder.path("file"));
  CHECK(values_of(fresh, model) == values_of(session, model));
}

TEST_CASE("restore refuses a file without a parameter or with another shape, and changes nothing") {
  const TemporaryFolder folder;
  const RestoredModel model;
  Session session = trained(model);
  const std::vector<Values> before = values_of(session, model);
  const auto refuses = [&](const std::vector<std::pair<std::string, Spec>>& all, const char* why) {
    CHECK_ERROR(session.restore(write(folder, all)), FileError, why);
    CHECK(values_of(session, model) == before);
  };
  refuses({{"a", kA}}, "has no parameter 'b'");
  refuses({{"a", kA}, {"b/m", kB}}, "has no parameter 'b'");
  refuses({{"a", kA}, {"b", kA}}, "'b' is f32[2] in the graph and f32[3]");
  refuses({{"a", kA}, {"b", {DType::i32, {2}}}}, "'b' is f32[2] in the graph and i32[2]");
  refuses({{"a", kA}, {"b", kB}, {"b/m", {DType::f32, {1, 2}}}}, "'b/m' is f32[2]");
  CHECK_ERROR(session.restore(folder.path("none")), FileError, "none");
  CHECK(values_of(session, model) == before);
}

TEST_CASE("restore changes nothing, whichever read of the file fails") {
  const TemporaryFolder folder;
  const RestoredModel model;
  const std::string file = write(folder, {{"a", kA}, {"b", kB}, {"a/m", kA}, {"b/m", kB}});
  std::size_t failures = 0;
  for (bool failed = true; failed; ++failures) {
    Session session = trained(model);
    const std::vector<Values> before = values_of(session, model);
    detail::fail_read_after(failures);
    INFO("read " << failures);
    try {
      session.restore(file);
      failed = false;
    } catch (const FileError&) {
    }
    detail::fail_read_after({});
    if (failed)
      CHECK(values_of(session, model) == before);
    else
      CHECK(values_of(session, model) == std::vector<Values>{{7, 7, 7}, {7, 7}, {7, 7, 7}, {7, 7}});
  }
  CHECK(failures > 4);  // the header's reads, and one for each tensor at least
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

TEST_CASE("a refused initialize changes nothing") {
  const RestoredModel model, other;
  Session session = trained(model);
  const std::vector<Values> before = values_of(session, model);
  CHECK_ERROR(session.initialize(other.parameters), Error, "this session's graph");
  CHECK(values_of(session, model) == before);
  const Parameters eager(Device::cpu());
  eager.declare("a", {3}, initializers::constant(5));
  CHECK_ERROR(session.initialize(eager), Error, "this session's graph");
  CHECK(values_of(session, model) == before);

  Session fresh(model.graph);
  CHECK_ERROR(fresh.initialize(other.parameters), Error, "this session's graph");
  CHECK_ERROR(fresh.value(model.a), Error, "has no value");
}

}  // namespace ebb::tests
