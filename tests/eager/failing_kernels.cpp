// Kernels that refuse or fail, and the state they leave.
#include <functional>

#include "ebb/allocator/host_source.h"
#include "ebb/core/device/runtime.h"
#include "ebb/ebb.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/device/host_kernel.h"
#include "ebb/tests/device/test_device.h"

using namespace ebb;

namespace {

using Floats = std::vector<float>;

enum class Outcome : std::int64_t { refused, failed, done };
struct OutcomeAttributes {
  Outcome outcome = Outcome::done;
};

constexpr auto run_half = [](const KernelContext& c) -> Status {
  const Outcome outcome = c.attribute<OutcomeAttributes>().outcome;
  if (outcome == Outcome::refused) return Status::refuse("cannot", 12);
  for (std::int64_t i = 0; i < c.inputs[0].elements() / 2; ++i) c.inputs[0].as<float>()[i] = 7;
  return outcome == Outcome::failed ? Status::fail("broke down") : Status{};
};
// Sets the first half of its input to 7 before it fails.
const OpDef half_op{.name = "half",
                    .infer = [](Inference& i) { i.output(i.inputs[0].dtype, i.inputs[0].shape); },
                    .updates = bit(0),
                    .stateful = true,
                    .cpu = {run_half},
                    .cuda = tests::copied<run_half>};

void update_half(const Tensor& target, Outcome outcome) {
  const Input input(target);
  apply(half_op, {&input, 1}, OutcomeAttributes{outcome}, CallSite::here());
}

}  // namespace

TEST_CASE("a kernel that refuses changes nothing, and the error has its operator, words and line") {
  const Tensor x = Tensor::full({4}, 1);
  CHECK_THROWS_WITH(
      update_half(x, Outcome::refused),
      Catch::Contains("[half] cannot (code 12) (") && Catch::Contains("failing_kernels.cpp"));
  CHECK(x.to_vector<float>() == Floats{1, 1, 1, 1});
}

TEST_CASE("what a failed kernel may have written cannot be read until all of it is set") {
  const Tensor x = Tensor::full({4}, 1);
  const Tensor view = slice(x, 1, 3), first_half = slice(x, 0, 2);
  CHECK_THROWS_AS(update_half(x, Outcome::failed), Error);
  CHECK_THROWS_WITH(x.to_vector<float>(), Catch::Contains("half"));
  CHECK_THROWS_AS(x.item<float>({0}), Error);
  CHECK_THROWS_AS(view.to_vector<float>(), Error);
  CHECK_THROWS_AS(x + 1, Error);
  CHECK_THROWS_AS(x.clone(), Error);
  CHECK_THROWS_AS(add_assign(x, 1), Error);
  CHECK_THROWS_AS(assign(view, 0), Error);  // a part of x, not all of it
  CHECK_THROWS_AS(assign(first_half, 0), Error);
  CHECK_THROWS_AS(x.to_vector<float>(), Error);
  CHECK(rows(x).item<std::int64_t>() == 4);  // its shape is known
  assign(x, 5);
  CHECK(x.to_vector<float>() == Floats{5, 5, 5, 5});
  CHECK((x + 1).to_vector<float>() == Floats{6, 6, 6, 6});
}

TEST_CASE("a parameter that a failed kernel was updating is not saved, and a checkpoint mends it") {
  const tests::TemporaryFolder folder;
  const Parameters p(Device::cpu());
  const Tensor w = p.declare("w", {4}, initializers::constant(2));
  p.save(folder.path("good"));
  CHECK_THROWS_AS(update_half(w.detach(), Outcome::failed), Error);
  CHECK_THROWS_WITH(p.save(folder.path("bad")), Catch::Contains("half"));
  p.load(folder.path("good"));
  CHECK(w.to_vector<float>() == Floats{2, 2, 2, 2});
}

TEST_CASE("what failed half-way is mended as the error says, through a view of it or a copy") {
  const Parameters p(Device::cpu()), good(Device::cpu());
  const Tensor w = p.declare("w", {4}, initializers::constant(2));
  good.declare("w", {4}, initializers::constant(3));
  CHECK_THROWS_AS(update_half(w.detach(), Outcome::failed), Error);
  assign(w.detach(), 5);
  CHECK(w.to_vector<float>() == Floats{5, 5, 5, 5});
  CHECK_THROWS_AS(update_half(w.detach(), Outcome::failed), Error);
  CHECK_THROWS_WITH(good.copy_from(p), Catch::Contains("failing_kernels.cpp"));
  p.copy_from(good);
  CHECK(w.to_vector<float>() == Floats{3, 3, 3, 3});
}

TEST_CASE("a batch in memory that a failed kernel was updating is as good as any") {
  const Floats values = {1, 2, 3, 4, 5, 6, 7, 8};
  DataLoader loader(DataSet(Tensor::from(values, {4, 2}), Tensor::from(values, {4, 2})),
                    {.batch = 2, .ahead = 0});
  auto position = loader.begin();
  CHECK_THROWS_AS(update_half((*position).input, Outcome::failed), Error);
  CHECK_THROWS_WITH((*position).input.to_vector<float>(), Catch::Contains("half"));
  ++position;
  CHECK((*position).input.to_vector<float>() == Floats{5, 6, 7, 8});
  CHECK(((*position).input + 1).to_vector<float>() == Floats{6, 7, 8, 9});
}

namespace {

// The host, whose copies fail on demand.
class FailingCopies final : public Backend {
 public:
  static inline bool fail = false;
  bool is_host() const noexcept override { return true; }
  std::unique_ptr<Stream> make_stream() override { return host_->make_stream(); }
  Status wait(Stream* stream, Stream* other) noexcept override {
    return host_->wait(stream, other);
  }
  Status synchronise(Stream* stream) noexcept override { return host_->synchronise(stream); }
  Status copy_in(Stream* stream, void* to, const void* from, std::size_t bytes) noexcept override {
    return fail ? Status::fail("lost") : host_->copy_in(stream, to, from, bytes);
  }
  Status copy_out(Stream* stream, void* to, const void* from, std::size_t bytes) noexcept override {
    return host_->copy_out(stream, to, from, bytes);
  }
  Status copy(Stream* stream, void* to, const void* from, std::size_t bytes) noexcept override {
    return fail ? Status::fail("lost") : host_->copy(stream, to, from, bytes);
  }
  Status fill(Stream* stream, void* to, unsigned char value, std::size_t bytes) noexcept override {
    return host_->fill(stream, to, value, bytes);
  }
  Launched run(Stream* stream, std::span<const Launch> launches) noexcept override {
    return host_->run(stream, launches);
  }

 private:
  const std::unique_ptr<Backend> host_ = ebb::detail::make_cpu_backend();
};

}  // namespace

TEST_CASE(
    "a copy that fails in load() or on the way out of attempt() leaves torn state that says so",
    "[row11]") {
  Runtime::Parts parts;
  parts.name = "failing";
  parts.source = std::make_unique<memory::HostSource>();
  parts.backend = std::make_unique<FailingCopies>();
  const tests::TemporaryFolder folder;
  const Parameters p(Runtime::make(std::move(parts)));
  const Tensor w = p.declare("w", {4}, initializers::constant(2)), s = p.state("s", {4});
  p.save(folder.path("good"));
  const std::pair<const char*, std::function<void()>> ways[] = {{"load",
                                                                 [&] {
                                                                   FailingCopies::fail = true;
                                                                   p.load(folder.path("good"));
                                                                 }},
                                                                {"attempt", [&] {
                                                                   attempt([&] {
                                                                     add_assign(s, 1);
                                                                     FailingCopies::fail = true;
                                                                     throw Error("half-way");
                                                                   });
                                                                 }}};
  for (const auto& [by, fails] : ways) {
    CHECK_THROWS_AS(fails(), Error);
    FailingCopies::fail = false;
    const Tensor& torn = *by == 'l' ? w : s;
    CHECK_ERROR(torn.to_vector<float>(), Error, by);
    CHECK_ERROR(p.save(folder.path("bad")), Error, by);
    p.load(folder.path("good"));
    CHECK(w.to_vector<float>() == Floats{2, 2, 2, 2});
    CHECK(s.to_vector<float>() == Floats{0, 0, 0, 0});
  }
}

TEST_CASE("an element of a view is the view's, and an index outside of it is refused") {
  const Tensor x = Tensor::from({1.f, 2.f, 3.f, 4.f});
  CHECK(slice(x, 2, 3).item<float>() == 3);
  CHECK(slice(x, 1, 3).item<float>({1}) == 3);
  CHECK_THROWS_WITH(x.item<float>({-1}), Catch::Contains("outside axis 0"));
  CHECK_THROWS_WITH(x.item<float>({4}), Catch::Contains("outside axis 0"));
  CHECK_THROWS_AS(x.item<float>(), ShapeError);
  CHECK_THROWS_AS(x.item<float>({0, 0}), ShapeError);
}
