#include "ebb/core/parameters/parameters.h"

#include <limits>

#include "ebb/core/autodiff/attempt.h"
#include "ebb/core/base/error.h"
#include "ebb/core/files/input_file.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/parameters/checkpoint.h"
#include "ebb/graph/session.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/names.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/golden/golden.h"
#include "ebb/tests/line.h"
#include "ebb/tests/uniform.h"

namespace ebb::tests {
namespace {

memory::Stats stats() { return memory::stats(Device::cpu()); }
std::size_t bytes_of(memory::Category category) {
  return stats().by_category[static_cast<std::size_t>(category)].current;
}

SlotRequest slot(std::string name, Shape shape = {}, DType dtype = DType::f32) {
  return {std::move(name), {dtype, shape}};
}

}  // namespace

TEST_CASE("parameters are named by their scopes and kept in order", "[parameters]") {
  const Parameters parameters(Device::cpu(), Seed{1});
  const Parameters encoder = parameters.scope("encoder");
  const Tensor w = encoder.scope("0").declare("weight", {3, 2}, kUniform);
  const Tensor b = parameters.declare("bias", {2}, initializers::zeros());
  CHECK(names(parameters.entries()) == std::vector<std::string>{"encoder.0.weight", "bias"});
  CHECK(parameters.count() == 8);
  CHECK(parameters["encoder.0.weight"].impl() == w.impl());
  CHECK(parameters.contains("bias"));
  CHECK_FALSE(parameters.contains("weight"));
  CHECK(b.requires_grad());
  CHECK(parameters.device() == Device::cpu());
  // The whole name determines the initial values, in both modes.
  Graph graph;
  const Parameters symbolic(graph, Seed{1});
  const Tensor variable = symbolic.declare("encoder.0.weight", {3, 2}, kUniform);
  CHECK((symbolic.is_symbolic() && variable.is_symbolic()));
  Session session(graph);
  session.initialize(symbolic);
  CHECK(bit_equal(session.value(variable), w));
  CHECK(values_of(b) == std::vector<double>{0, 0});
}

TEST_CASE("parameters and slots are counted in their categories, and go with the last handle",
          "[parameters]") {
  const std::size_t parameters_before = bytes_of(memory::Category::parameter);
  const std::size_t state_before = bytes_of(memory::Category::optimizer_state);
  const std::size_t gradients_before = bytes_of(memory::Category::gradient);
  const std::size_t before = stats().allocated.current;
  {
    const Parameters parameters(Device::cpu());
    const Tensor w = parameters.declare("w", {200}, kUniform);
    CHECK(bytes_of(memory::Category::parameter) - parameters_before == 1024);
    parameters.find_or_make_slots(
        std::vector{slot("w/adam.m", {200}), slot("w/adam.accumulated", {200})}, {});
    CHECK(bytes_of(memory::Category::optimizer_state) - state_before == 1024);
    CHECK(bytes_of(memory::Category::gradient) - gradients_before == 1024);
    sum(w).backward();
    CHECK(bytes_of(memory::Category::gradient) - gradients_before == 2048);
    parameters.zero_grad();
    CHECK(bytes_of(memory::Category::gradient) - gradients_before == 1024);
  }
  CHECK(stats().allocated.current == before);
}

TEST_CASE("slots are found again, or made zero, all or none", "[parameters]") {
  const Parameters parameters(Device::cpu());
  parameters.declare("w", {3}, kUniform);
  const Tensors made = parameters.find_or_make_slots(
      std::vector{slot("w/m", {3}), slot("o/step", {}, DType::i64)}, {});
  CHECK(values_of(made[0]) == std::vector<double>{0, 0, 0});
  CHECK(made[1].item<std::int64_t>() == 0);
  const Tensors found = parameters.find_or_make_slots(
      std::vector{slot("o/step", {}, DType::i64), slot("w/v", {3}), slot("w/m", {3})}, {});
  CHECK(found[0].impl() == made[1].impl());
  CHECK(found[2].impl() == made[0].impl());
  CHECK(names(parameters.slots()) == std::vector<std::string>{"w/m", "o/step", "w/v"});

  const std::size_t before = stats().allocated.current;
  CHECK_ERROR(parameters.find_or_make_slots(std::vector{slot("w/x"), slot("w/m", {4})}, {}), Error,
              "the slot \"w/m\" is f32[3], but f32[4] is wanted");
  CHECK_ERROR(parameters.find_or_make_slots(std::vector{slot("w/x"), slot("w")}, {}), Error,
              "it has no '/'");
  memory::set_limit(Device::cpu(), stats().reserved.current);
  CHECK_ERROR(parameters.find_or_make_slots(std::vector{slot("w/x"), slot("w/y", {1 << 28})}, {}),
              OutOfMemory, "");
  memory::set_limit(Device::cpu(), std::nullopt);
  CHECK(parameters.slots().size() == 3);
  CHECK(stats().allocated.current == before);

  parameters.drop_slots_after(1);
  CHECK(names(parameters.slots()) == std::vector<std::string>{"w/m"});
  CHECK_FALSE(parameters.contains("o/step"));
}

TEST_CASE("what is saved is loaded again: values, slots and random state", "[parameters]") {
  const TemporaryFolder folder;
  const std::string file = folder.path("p");
  const DType dtype = GENERATE(DType::f32, DType::f64, DType::f16, DType::bf16);
  const auto build = [&](Seed seed) {
    const Parameters parameters(Device::cpu(), seed, dtype);
    parameters.scope("s").declare("w", {3, 4}, kUniform);
    parameters.declare("b", {4}, kUniform);
    return parameters;
  };
  const Parameters saved = build(Seed{1});
  const Tensors slots = saved.find_or_make_slots(
      std::vector{slot("s.w/m", {3, 4}, dtype), slot("o/step", {}, DType::i64)}, {});
  assign(slots[0], 2.5);
  assign(slots[1], Tensor::full({}, 17, DType::i64));
  set_seed(Seed{9});
  uniform({1});
  saved.save(file);
  const Tensor next = uniform({8});
  CHECK(folder.count() == 1);

  const Parameters loaded = build(Seed{2});
  const Tensor w = loaded["s.w"];
  // A backward pass that kept w must notice the load.
  const Tensor loss = sum(square(w));
  loaded.load(file);
  CHECK(loaded["s.w"].impl() == w.impl());
  CHECK_ERROR(loss.backward(), Error, "");
  for (const char* name : {"s.w", "b", "s.w/m", "o/step"}) {
    CAPTURE(name);
    CHECK(bit_equal(loaded[name], saved[name]));
  }
  CHECK(loaded.slots().size() == 2);
  CHECK(bit_equal(uniform({8}), next));
}

TEST_CASE("a file that does not fit changes nothing", "[parameters]") {
  const TemporaryFolder folder;
  const Parameters parameters(Device::cpu(), Seed{1});
  const Tensor a = parameters.declare("a", {3}, kUniform);
  const Tensor b = parameters.declare("b", {2}, kUniform);
  const Tensor a_before = a.clone(), b_before = b.clone();
  const float values[4] = {1, 2, 3, 4};
  const auto write = [&](const std::vector<safetensors::View>& views,
                         const safetensors::Metadata& metadata = {}) {
    safetensors::write(folder.path("f"), views, metadata);
    return folder.path("f");
  };
  const auto view = [&](const char* name, Shape shape, DType dtype = DType::f32) {
    return safetensors::View{name, {dtype, shape}, values};
  };

  CHECK_ERROR(parameters.load(folder.path("none")), FileError, "none");
  CHECK_ERROR(parameters.load(write({view("a", {3})})), FileError,
              "has no parameter \"b\", which is f32[2] here");
  CHECK_ERROR(parameters.load(write({view("a", {3}), view("b", {3})})), FileError,
              "\"b\" is f32[3]");
  CHECK_ERROR(parameters.load(write({view("a", {3}), view("b", {2}, DType::i32)})), FileError,
              "\"b\" is i32[2]");
  CHECK_ERROR(parameters.load(write({view("a", {3}), view("b", {2})}, {{"ebb.format", "2"}})),
              FileError, "2");
  const std::string good = write({view("a", {3}), view("b", {2})});
  const std::string contents = contents_of(good);
  CHECK_ERROR(parameters.load(folder.file("cut", contents.substr(0, contents.size() - 1))),
              FileError, "cut");
  CHECK(bit_equal(a, a_before));
  CHECK(bit_equal(b, b_before));
  CHECK(parameters.slots().empty());

  parameters.load(good);
  CHECK(values_of(a) == std::vector<double>{1, 2, 3});
  CHECK(values_of(b) == std::vector<double>{1, 2});
}

TEST_CASE("a loader without a position is refused when it is saved", "[parameters]") {
  struct Nowhere final : Resumable {
    Position position() const override { return {}; }
    void check(const Position&, const std::string&) const override {}
    void resume(const Position&) noexcept override {}
  };
  const TemporaryFolder folder;
  const Parameters parameters(Device::cpu());
  parameters.declare("w", {2}, kUniform);
  CHECK_ERROR(parameters.save(folder.path("file"), Nowhere()), Error, "position() is empty");
  CHECK(folder.count() == 0);
}

TEST_CASE("load changes nothing, whichever read of the file fails", "[parameters]") {
  const TemporaryFolder folder;
  const auto build = [](Seed seed) {
    const Parameters parameters(Device::cpu(), seed);
    parameters.declare("a", {3}, kUniform);
    parameters.declare("b", {2}, kUniform);
    parameters.find_or_make_slots(std::vector{slot("a/m", {3})}, {});
    assign(parameters["a/m"], static_cast<double>(seed.value));
    return parameters;
  };
  const Parameters saved = build(Seed{1});
  saved.find_or_make_slots(std::vector{slot("b/m", {2})}, {});  // load has to make it
  const std::string file = folder.path("f");
  saved.save(file);
  std::size_t failures = 0;
  for (bool failed = true; failed; ++failures) {
    const Parameters parameters = build(Seed{2}), before = build(Seed{2});
    set_seed(Seed{3});
    detail::fail_read_after(failures);
    INFO("read " << failures);
    try {
      parameters.load(file);
      failed = false;
    } catch (const FileError&) {
    }
    detail::fail_read_after({});
    const Tensor draw = uniform({4});
    set_seed(Seed{3});
    CHECK(bit_equal(draw, uniform({4})) == failed);
    for (const char* name : {"a", "b", "a/m"}) {
      CAPTURE(name);
      CHECK(bit_equal(parameters[name], (failed ? before : saved)[name]));
    }
    CHECK(parameters.slots().size() == (failed ? 1 : 2));
  }
  CHECK(failures > 4);  // the header's reads, and one for each tensor at least
}

TEST_CASE("parameters say what they cannot do", "[parameters]") {
  const Parameters parameters(Device::cpu());
  parameters.scope("a").declare("w", {2}, kUniform);
  CHECK_ERROR(parameters.declare("a.w", {2}, kUniform), Error,
              "there is a parameter \"a.w\" already");
  CHECK_ERROR(parameters.declare("", {2}, kUniform), Error, "cannot name a parameter");
  CHECK_ERROR(parameters.declare("a/b", {2}, kUniform), Error, "cannot name a parameter");
  CHECK_ERROR(parameters.declare("b", {-1}, kUniform), ShapeError, "has an open dimension");
  CHECK_ERROR(parameters["b"], Error, "there is no \"b\"; there are a.w");
  CHECK_ERROR(Parameters(Device::cpu())["b"], Error, "there are none yet");
  CHECK_ERROR(Parameters(Device::cpu()).scope("b")["c"], Error, "there are none yet");
  CHECK_ERROR(parameters.scope("b")["w"], Error,
              "there is no \"b.w\"; below \"b.\" there are none, elsewhere a.w");
  // The nearest names come first, compared whole.
  const Parameters model(Device::cpu());
  for (const char* scope : {"v", "encoder"}) model.scope(scope).declare("wieght", {2}, kUniform);
  CHECK_ERROR(model.scope("encodr")["weight"], Error,
              "there are none, elsewhere encoder.wieght, v.wieght");
  CHECK_ERROR(Parameters(Device::cpu(), {}, DType::i32), Error,
              "are f32, f64, f16 or bf16, not i32");

  Graph graph;
  const Parameters symbolic(graph);
  symbolic.declare("w", {2}, kUniform);
  CHECK_ERROR(symbolic.declare("w", {2}, kUniform), Error, "\"w\" already");
  CHECK_ERROR(symbolic.save("x"), Error, "its own");
  CHECK_ERROR_HERE(symbolic.load("x"), Error, "its own");
  CHECK_ERROR(symbolic.device(), Error, "on no device");
}

TEST_CASE("a parameter of a name that was taken back does not find the other's slots unasked",
          "[parameters]") {
  const Parameters parameters(Device::cpu());
  const std::vector<std::size_t> first = {0};
  const std::vector<SlotBeside> moment = {{"m", DType::f32}};
  CHECK_THROWS_AS(attempt([&] {
                    parameters.declare("w", {2}, kUniform);
                    parameters.find_or_make_slots({first, moment}, {});
                    throw Error("[failing]");
                  }),
                  Error);
  parameters.declare("w", {3}, kUniform);
  CHECK_ERROR(parameters.find_or_make_slots({first, moment}, {}), Error,
              "the slot \"w/m\" is f32[2], but f32[3] is wanted");
}

TEST_CASE("a parameter does not start as what is no distribution", "[parameters]") {
  const Parameters parameters(Device::cpu());
  const auto declare = [&](const Initializer& initializer) {
    return parameters.declare("w", {1}, initializer, CallSite{"user.cpp", 7});
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_ERROR(declare(initializers::uniform(1, 0)), Error,
              "[parameters] \"w\" cannot start uniform from 1.000000 to 0.000000 (user.cpp:7)");
  CHECK_ERROR(declare(initializers::normal(0, -1)), Error,
              "\"w\" cannot start normal with a mean of 0.000000 and a deviation of -1.000000");
  CHECK_ERROR(declare(initializers::uniform(0, nan)), Error, "cannot start uniform");
  CHECK_ERROR(declare(initializers::normal(nan, 1)), Error, "cannot start normal");
  CHECK_ERROR(declare(initializers::he_normal(0)), Error, "a deviation of inf");
  CHECK_ERROR(declare(initializers::glorot_uniform(0, 0)), Error, "uniform from -inf to inf");
  CHECK(parameters.entries().empty());
  CHECK(declare(initializers::normal(2, 0)).item<float>() == 2);
  CHECK(parameters.declare("b", {1}, initializers::uniform(3, 3)).item<float>() == 3);
}

TEST_CASE("simulated parameters have shapes and bytes, and no values", "[parameters]") {
  const TemporaryFolder folder;
  const auto program = [](const Device& device) {
    const Parameters parameters(device, Seed{1});
    parameters.declare("w", {200}, kUniform);
    parameters.find_or_make_slots(std::vector{slot("w/m", {200})}, {});
    return parameters;
  };
  const Parameters real = program(Device::cpu());
  real.save(folder.path("f"));
  const Device twin = Device::cpu().twin();
  const Parameters parameters = program(twin);
  CHECK(memory::stats(twin).allocated.current == 2048);
  parameters.load(folder.path("f"));
  CHECK_ERROR(parameters.save(folder.path("g")), SimulatedRead, "the device is simulated");
  CHECK(folder.count() == 1);
}

}  // namespace ebb::tests
