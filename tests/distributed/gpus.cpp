// Mistakes that only ranks with GPUs can make, and those that only a fake NCCL shows.
#include <dlfcn.h>

#include <cstdlib>

#include "ebb/core/base/half.h"
#include "ebb/core/ops/collective.h"
#include "ebb/tests/device/test_device.h"
#include "ebb/tests/distributed/ranks.h"
#include "ebb/tests/emulated_cuda/control.h"

namespace ebb::tests {
namespace {

const emulated::Control& machine() {
  using Function = const emulated::Control*();
  static void* const part = ::dlopen(std::getenv("EBB_CUDA_PART"), RTLD_NOW | RTLD_LOCAL);
  return *reinterpret_cast<Function*>(::dlsym(part, "ebb_emulated_control"))();  // NOLINT
}

std::uint64_t library_objects() {
  emulated::Statistics statistics = {};
  machine().statistics(&statistics);
  return statistics.library_objects;
}

// A rank's i-th number: such that the order of a sum shows in its last bits.
float number(int rank, std::int64_t i) {
  return std::sin(0.7f * static_cast<float>(i + 1) + static_cast<float>(rank)) *
         (rank % 2 ? 1e4f : 1.0f);
}

template <class T>
void check_sums_in_order(DType dtype) {
  const World world({.ordered = true});
  const int size = world.size();
  for (const std::int64_t elements : {1, 5, 257}) {
    INFO(name(dtype) << ", " << elements);
    std::vector<float> own, sums, means;
    for (std::int64_t i = 0; i < elements; ++i) {
      own.push_back(number(world.rank(), i));
      float sum = static_cast<float>(T(number(0, i)));
      for (int k = 1; k < size; ++k) sum = sum + static_cast<float>(T(number(k, i)));
      sums.push_back(static_cast<float>(T(sum)));
      means.push_back(static_cast<float>(T(sums.back() / static_cast<float>(size))));
    }
    const Tensor x = cast(Tensor::from(own), dtype);
    const auto values = [](const Tensor& y) { return cast(y, DType::f32).to_vector<float>(); };
    CHECK(values(distributed::all_reduce(x, world)) == sums);
    CHECK(values(distributed::all_reduce(x, world, ReduceOp::mean)) == means);
  }
}

TEST_CASE("Sums in order have the bits that the host's loop over the ranks has") {
  check_sums_in_order<float>(DType::f32);
  check_sums_in_order<Float16>(DType::f16);
  check_sums_in_order<BFloat16>(DType::bf16);
}

TEST_CASE("A communicator goes with its world, and none is made before it is needed") {
  if (World().size() == 1 || !on_emulated_cuda()) return;
  const std::uint64_t before = library_objects();
  {
    const World world;
    const World half = world.split(0);
    CHECK(library_objects() == before);
    distributed::all_reduce(ones({3}), world);
    distributed::all_reduce(ones({3}), half);
    distributed::all_reduce(ones({3}), world);
    CHECK(library_objects() == before + 2);
  }
  CHECK(library_objects() == before);
  CHECK(std::string(machine().last_complaint()) == "");
}

// The error of each rank where rank 1 meets `fault` in the middle of some sums.
std::string error_with(emulated::Fault fault, bool throws) {
  const std::string error = error_of([&] {
    const World world;
    Tensor sum = distributed::all_reduce(ones({3}), world);
    CHECK(sum.item<float>({0}) == static_cast<float>(world.size()));
    if (world.rank() == 1) machine().inject(fault, 0, 1);
    Tensor begun = ebb::detail::begin_total(sum, world, "numbers");
    if (throws && world.rank() == 1) throw Error("out of something");
    begun = ebb::detail::end_total(begun, world);
    begun.item<float>({0});
    for (int i = 0; i < 3; ++i) distributed::all_reduce(begun, world).item<float>({0});
  });
  machine().inject(fault, 0, -1);
  return error;
}

// A world that is made after a failure works, and its values can be read.
void begin_anew() {
  const World world;
  CHECK(distributed::all_reduce(ones({3}), world).item<float>({0}) ==
        static_cast<float>(world.size()));
}

TEST_CASE("A failure of NCCL on one rank is an error on all, and a new world works") {
  const int rank = World().rank();
  if (World().size() == 1 || !on_emulated_cuda()) return;
  for (const emulated::Fault fault : {emulated::Fault::nccl, emulated::Fault::nccl_later}) {
    const std::string error = error_with(fault, false);
    INFO("fault " << static_cast<int>(fault) << ": " << error);
    CHECK((rank == 1 ? error.find("NCCL_DEBUG") != std::string::npos : error != ""));
    begin_anew();
  }
}

TEST_CASE("Values stay errors where NCCL has failed, until the program makes another world") {
  if (World().size() == 1 || !on_emulated_cuda()) return;
  Tensor sum;
  {
    const World world, healthy;
    distributed::all_reduce(ones({3}), healthy).item<float>({0});
    sum = distributed::all_reduce(ones({3}), world);
    sum.item<float>({0});
    if (world.rank() == 1) machine().inject(emulated::Fault::nccl_later, 0, 1);
    error_of([&] { sum = distributed::all_reduce(sum, world); });
  }  // both end, one with work under way
  machine().inject(emulated::Fault::nccl_later, 0, -1);
  for (int i = 0; i < 2; ++i) CHECK(error_of([&] { sum.item<float>({0}); }) != "");
  begin_anew();
}

TEST_CASE("Ranks do not wait for one that has thrown while its GPU was stuck") {
  if (World().size() == 1 || !on_emulated_cuda()) return;
  const bool throws = World().rank() == 1;
  const std::string error = error_with(emulated::Fault::nccl_stuck, true);
  INFO(error);
  CHECK(error.find(throws ? "out of something" : "remote process exited") != std::string::npos);
  begin_anew();
}

}  // namespace
}  // namespace ebb::tests
