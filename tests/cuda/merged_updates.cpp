// Updates of many tensors by one kernel give the same as one after the other, whatever memory they
// share.
#include <cstring>

#include "ebb/core/device/lent_stream.h"
#include "ebb/core/device/runtime.h"
#include "ebb/optim/kernels/rules.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/cuda/fixture.h"

using namespace ebb;
using namespace ebb::tests;

namespace {

// memory[p..] -= rate (memory[g..] + decay memory[p..]) for n elements.
struct Update {
  std::int64_t p, g, n;
  std::size_t rate = 0;  // index into kRates
  double decay = 0;
};
constexpr double kRates[] = {0.5, 0.125};

using Floats = std::vector<float>;

Floats one_by_one(Floats memory, const std::vector<Update>& updates) {
  for (const Update& of : updates)
    for (std::int64_t i = 0; i < of.n; ++i) {
      float& p = memory[static_cast<std::size_t>(of.p + i)];
      const float g = memory[static_cast<std::size_t>(of.g + i)];
      p -= static_cast<float>(kRates[of.rate]) * (g + static_cast<float>(of.decay) * p);
    }
  return memory;
}

// Makes updates by one call of the merged kernel.
class Together {
 public:
  explicit Together(std::size_t count)
      : device_(own_cuda()),
        runtime_(device_.runtime()),
        stream_(runtime_),
        bytes_(count * sizeof(float)),
        memory_(runtime_.allocator().allocate({bytes_ + sizeof(kRates) + kStepBytes})) {}
  ~Together() { runtime_.allocator().free(memory_); }
  Together(const Together&) = delete;
  Together& operator=(const Together&) = delete;

  Status update(const Floats& memory, const std::vector<Update>& updates) {
    const std::int64_t step = 1;
    runtime_.copy_in(stream_.get(), memory_->data(), &step, sizeof(step));
    runtime_.copy_in(stream_.get(), rates(), kRates, sizeof(kRates));
    runtime_.copy_in(stream_.get(), floats(), memory.data(), bytes_);
    std::vector<Attributes> attributes;
    std::vector<std::vector<Buffer>> inputs;
    for (const Update& of : updates) {
      attributes.push_back(optim::SgdAttributes{.weight_decay = of.decay});
      const auto at = [&](std::int64_t element) {
        return Buffer{floats() + element * static_cast<std::int64_t>(sizeof(float)),
                      {DType::f32, Shape({of.n})}};
      };
      inputs.push_back({at(of.p),
                        at(of.g),
                        {memory_->data(), {DType::i64, Shape()}},
                        {rates() + of.rate * sizeof(double), {DType::f64, Shape()}}});
    }
    std::vector<Launch> launches(updates.size());
    for (std::size_t i = 0; i < launches.size(); ++i) {
      launches[i].context.inputs = inputs[i];
      launches[i].context.attributes = &attributes[i];
      launches[i].context.stream = stream_.get();
    }
    return cuda::sgd_update_merged(launches);
  }
  Floats result() {
    Floats got(bytes_ / sizeof(float));
    runtime_.copy_out(stream_.get(), got.data(), floats(), bytes_);
    return got;
  }

 private:
  static constexpr std::size_t kStepBytes = 16;
  std::byte* rates() const { return static_cast<std::byte*>(memory_->data()) + kStepBytes; }
  std::byte* floats() const { return rates() + sizeof(kRates); }  // aligned as memory is

  const Device device_;
  Runtime& runtime_;
  const LentStream stream_;
  const std::size_t bytes_;
  memory::Block* const memory_;
};

void check(const std::vector<Update>& updates) {
  const Machine machine;
  const Floats memory = ramp(20000);
  Together together(memory.size());
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    machine->set_seed(seed);
    REQUIRE(together.update(memory, updates).ok());
    CHECK(together.result() == one_by_one(memory, updates));
  }
}

}  // namespace

TEST_CASE("an update reads what the one before it wrote, and not what the next one writes") {
  check({{0, 10000, 3000}, {5000, 0, 3000}});
  check({{5000, 0, 3000}, {0, 10000, 3000}});
  check({{0, 10000, 3000}, {0, 5000, 3000}});
}

TEST_CASE("updates of memory that overlaps in part are made in their order") {
  check({{0, 10000, 3000}, {1500, 14000, 3000}});
  check({{1500, 14000, 3000}, {0, 10000, 3000}});
  check({{0, 10000, 3000}, {6000, 2999, 3000}});
}

TEST_CASE("updates of different rates or options have each their own") {
  check({{0, 10000, 33, 0}, {100, 10000, 33, 1}, {200, 10000, 33, 0}});
  check({{0, 10000, 33, 0, 0.25}, {100, 10000, 33}, {200, 10000, 33, 0, 0.5}});
}

TEST_CASE("an update of very many elements, from an odd one on, leaves none out") {
  const Machine machine;
  constexpr std::int64_t kMany = (2048 * 2048) + 5000;  // more than the blocks of a launch take
  const Floats memory = ramp(2 * kMany + 1);
  Together together(memory.size());
  const std::vector<Update> updates = {{1, 1 + kMany, kMany}};
  REQUIRE(together.update(memory, updates).ok());
  const bool is_right = together.result() == one_by_one(memory, updates);  // too many to print
  CHECK(is_right);
}

TEST_CASE("updates of which a later kernel is refused do not say that nothing was written") {
  const Machine machine;
  const Floats memory = ramp(20000);
  Together together(memory.size());
  const std::vector<Update> updates = {{0, 10000, 33, 0}, {100, 10000, 33, 1}};  // of two rates
  machine->inject(emulated::Fault::launch, 1, 701);
  const Status status = together.update(memory, updates);
  CHECK_FALSE(status.ok());
  CHECK_FALSE(status.refused);
  machine->inject(emulated::Fault::launch, 0, 701);
  CHECK(together.update(memory, updates).refused);
  CHECK(machine->last_error() == 0);
}
