#include "ebb/core/data/data_loader.h"

#include <algorithm>
#include <numeric>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/core/tensor/tensor_impl.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/counting.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/line.h"

namespace {

using namespace ebb;
using tests::counting;
using Order = std::vector<std::int32_t>;

// Returns the targets of a pass; requires that the inputs belong to them.
Order pass(DataLoader& loader) {
  Order order;
  for (auto [x, y] : loader) {
    const Order targets = tests::targets_of(x, y);
    order.insert(order.end(), targets.begin(), targets.end());
  }
  return order;
}

Order sorted(Order order) {
  std::sort(order.begin(), order.end());
  return order;
}

Order in_order(std::int64_t count) {
  Order order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  return order;
}

memory::Stats stats(const Device& device) { return device.runtime().allocator().stats(); }

}  // namespace

TEST_CASE("a pass covers each sample exactly once, in order unless shuffled") {
  for (const std::int64_t count : {1, 5, 12, 100})
    for (const std::int64_t batch : {1, 4, 12, 1000}) {
      DataLoader plain(counting(count), {.batch = batch});
      DataLoader shuffled(counting(count), {.batch = batch, .shuffle = Seed{9}});
      CHECK(plain.size() == (count + batch - 1) / batch);
      for (int i = 0; i < 3; ++i) {
        CHECK(pass(plain) == in_order(count));
        CHECK(sorted(pass(shuffled)) == in_order(count));
      }
    }
}

TEST_CASE("the last batch has the samples that are left, or is left out") {
  const auto sizes = [](bool drop_last, std::int64_t batch) {
    std::vector<std::int64_t> result;
    DataLoader loader(counting(10), {.batch = batch, .drop_last = drop_last});
    for (auto [x, y] : loader) {
      CHECK(x.shape() == Shape{y.shape()[0], 2});
      result.push_back(y.shape()[0]);
    }
    CHECK(loader.size() == static_cast<std::int64_t>(result.size()));
    return result;
  };
  CHECK(sizes(false, 4) == std::vector<std::int64_t>{4, 4, 2});
  CHECK(sizes(true, 4) == std::vector<std::int64_t>{4, 4});
  CHECK(sizes(true, 5) == std::vector<std::int64_t>{5, 5});
  CHECK(sizes(true, 11).empty());
}

TEST_CASE("every pass is a new shuffle, and the same seed repeats them all") {
  DataLoader a(counting(100), {.batch = 7, .shuffle = Seed{1}});
  DataLoader b(counting(100), {.batch = 10, .shuffle = Seed{1}});
  DataLoader other(counting(100), {.batch = 7, .shuffle = Seed{2}});
  const Order first = pass(a), second = pass(a);
  CHECK(first != in_order(100));
  CHECK(first != second);
  CHECK(pass(b) == first);  // whatever the batch
  CHECK(pass(b) == second);
  CHECK(pass(other) != first);
}

TEST_CASE("a shuffle puts each sample first about equally often") {
  DataLoader loader(counting(5), {.batch = 5, .shuffle = Seed{3}});
  std::vector<int> times(5);
  for (int i = 0; i < 1000; ++i) ++times[static_cast<std::size_t>(pass(loader).front())];
  for (const int n : times) CHECK(std::abs(n - 200) < 64);  // five deviations
}

TEST_CASE("a batch of which a view is held stays as it is") {
  DataLoader loader(counting(9), {.batch = 4});
  auto position = loader.begin();
  Tensor view;
  {
    const Tensor whole = (*position).target;
    view = detail::make_concrete({DType::i32, {2}}, whole.impl()->storage, 8);
  }
  ++position;
  CHECK((*position).target.to_vector<std::int32_t>() == Order{4, 5, 6, 7});
  CHECK(view.to_vector<std::int32_t>() == Order{2, 3});
}

TEST_CASE("a batch that nobody holds gives its memory to the next, at a new version") {
  for (const std::int64_t ahead : {0, 1, 2}) {
    DataLoader loader(counting(12), {.batch = 3, .ahead = ahead});
    auto position = loader.begin();
    const void* memory = detail::data((*position).input);
    const std::uint32_t version = (*position).input.impl()->storage->version();
    for (std::int64_t i = 0; i < ahead; ++i) {
      ++position;
      CHECK(detail::data((*position).input) != memory);
    }
    ++position;
    CHECK(detail::data((*position).input) == memory);
    CHECK((*position).input.impl()->storage->version() > version);
  }
}

TEST_CASE("of a batch whose targets alone are held the inputs give their memory to the next") {
  DataLoader loader(counting(8), {.batch = 4, .ahead = 0});
  auto position = loader.begin();
  const void* const inputs = detail::data((*position).input);
  const Tensor held = (*position).target;
  ++position;
  CHECK(detail::data((*position).input) == inputs);
  CHECK(detail::data((*position).target) != detail::data(held));
  CHECK(held.to_vector<std::int32_t>() == Order{0, 1, 2, 3});
  CHECK((*position).target.to_vector<std::int32_t>() == Order{4, 5, 6, 7});
}

TEST_CASE("past the end of a pass there is no batch, and the loader's position stays in the pass") {
  for (const std::int64_t ahead : {0, 1}) {
    DataLoader loader(counting(8), {.batch = 4, .ahead = ahead});
    auto position = loader.begin();
    for (int i = 0; i < 2; ++i, ++position) static_cast<void>(*position);
    for (int i = 0; i < 2; ++i, ++position)
      CHECK_ERROR(*position, Error, "[DataLoader] past the end of the pass, which has 2 batches");
    CHECK(loader.position().at("pass") == "1");
    CHECK(loader.position().at("position") == "0");
  }
}

TEST_CASE(
    "a loader refuses a batch below 1, less than nothing ahead and an empty data set, and says "
    "where") {
  CHECK_ERROR(DataLoader(counting(3), {.batch = 0}), Error, "batch must be at least 1, not 0");
  CHECK_ERROR(DataLoader(counting(3), {.batch = -1}), Error, "data_loader.cpp:");
  CHECK_ERROR(DataLoader(counting(3), {.ahead = -1}), Error, "ahead must be at least 0, not -1");
  CHECK_ERROR(DataLoader(counting(0)), Error, "the data set is empty");
}

TEST_CASE(
    "a loader that does not fit takes nothing, and a batch that does not leaves the loader as it "
    "was") {
  const Device device = Device::simulated("cpu", std::size_t{1} << 30);
  memory::CachingAllocator& allocator = device.runtime().allocator();
  const DataSet data = counting(1 << 19);  // 4 MiB of inputs, 2 MiB of targets
  const DataLoaderOptions options = {.batch = 1 << 18, .device = device, .ahead = 0};
  allocator.set_limit(std::size_t{2} << 20);
  CHECK_ERROR(DataLoader(data, options), OutOfMemory, "data_loader.cpp");
  CHECK(stats(device).allocated.current == 0);

  allocator.set_limit(std::nullopt);
  DataLoader loader(data, options);
  auto position = loader.begin();
  std::optional<Batch> held = *position;
  ++position;
  allocator.release_cached();
  allocator.set_limit(stats(device).reserved.current);
  const std::size_t before = stats(device).allocated.current;
  CHECK_ERROR(*position, OutOfMemory, "");
  CHECK(stats(device).allocated.current == before);
  held.reset();
  CHECK((*position).input.shape() == Shape{1 << 18, 2});
}

TEST_CASE("a loader goes on where another one was, wherever that is, up to its number of passes") {
  for (const bool shuffled : {false, true})
    for (const bool drop_last : {false, true})
      for (const std::int64_t ahead : {0, 1, 3}) {
        DataLoaderOptions options = {.batch = 3, .drop_last = drop_last, .ahead = ahead};
        if (shuffled) options.shuffle = Seed{4};
        const auto rest_of = [](DataLoader& loader) {
          std::vector<Order> rest;
          while (loader.pass() < 5)
            for (auto [x, y] : loader) rest.push_back(y.to_vector<std::int32_t>());
          return rest;
        };
        DataLoader straight(counting(11), options);
        const std::vector<Order> expected = rest_of(straight);
        CHECK(expected.size() == static_cast<std::size_t>(5 * straight.size()));
        for (std::size_t given = 0; given <= 9; ++given) {
          DataLoader first(counting(11), options);
          for (std::size_t left = given; left > 0;)
            for (auto [x, y] : first)
              if (--left == 0) break;
          DataLoader second(counting(11), options);
          second.check(first.position(), "a file");
          second.resume(first.position());
          CHECK(second.position() == first.position());
          CHECK(second.pass() == static_cast<std::int64_t>(given) / second.size());
          CHECK(second.given() == static_cast<std::int64_t>(given) % second.size());
          CHECK(rest_of(second) ==
                std::vector<Order>(expected.begin() + static_cast<std::ptrdiff_t>(given),
                                   expected.end()));
        }
      }
}

TEST_CASE(
    "a loop that was left by break goes on once resumed, unless begin() leaves its rest out") {
  const DataLoaderOptions options = {.batch = 3, .shuffle = Seed{1}};
  const auto epoch = [](DataLoader& loader) {  // two batches of the four in a pass
    Order order;
    for (auto [x, y] : loader) {
      const Order targets = y.to_vector<std::int32_t>();
      order.insert(order.end(), targets.begin(), targets.end());
      if (order.size() == 6) break;
    }
    return order;
  };
  DataLoader straight(counting(12), options);
  const Order first = epoch(straight), second = epoch(straight);
  DataLoader left(counting(12), options);
  CHECK(epoch(left) == first);
  DataLoader goes_on(counting(12), options), begins(counting(12), options);
  goes_on.resume(left.position());
  Order both = first;
  for (const std::int32_t target : epoch(goes_on)) both.push_back(target);
  CHECK(sorted(both) == in_order(12));
  begins.resume(left.position());
  static_cast<void>(begins.begin());
  CHECK(epoch(begins) == second);
}

TEST_CASE("passes without a batch are counted as well") {
  const DataLoaderOptions options{.batch = 4, .drop_last = true};
  DataLoader loader(counting(3), options), resumed(counting(3), options);
  std::int64_t passes = 0;
  while (loader.pass() < 3 && passes < 10) {
    CHECK(loader.pass() == passes);
    CHECK(loader.given() == 0);
    for (const auto& [x, y] : loader) FAIL("a batch of " << y.size(0));
    ++passes;
    resumed.resume(loader.position());
    CHECK(resumed.pass() == passes);
  }
  CHECK(passes == 3);
}

TEST_CASE("a loader's position is what follows the batches given out in its last pass") {
  DataLoader loader(counting(9), {.batch = 3, .shuffle = Seed{1}});
  const auto where = [&] {
    const Resumable::Position position = loader.position();
    CHECK(position.at("pass") == std::to_string(loader.pass()));
    CHECK(position.at("position") == std::to_string(loader.given()));
    return std::pair(position.at("pass"), position.at("position"));
  };
  using Where = std::pair<std::string, std::string>;
  CHECK(where() == Where("0", "0"));
  auto outer = loader.begin();
  CHECK(where() == Where("0", "0"));
  static_cast<void>(*outer);  // the next one is made ahead, and not given out
  CHECK(where() == Where("0", "1"));
  ++outer;
  CHECK(where() == Where("0", "1"));
  static_cast<void>(*outer);
  auto inner = loader.begin();
  static_cast<void>(*inner);
  CHECK(where() == Where("1", "1"));
  ++outer;
  static_cast<void>(*outer);
  CHECK(where() == Where("1", "1"));
  for (; inner != loader.end(); ++inner) static_cast<void>(*inner);
  CHECK(where() == Where("2", "0"));
  // resume() begins the pass of its position anew. An older pass that goes on no longer moves the
  // position.
  auto last = loader.begin();
  const Resumable::Position position = loader.position();
  loader.resume(position);
  static_cast<void>(*last);
  CHECK(loader.position() == position);
  CHECK((*loader.begin()).target.to_vector<std::int32_t>() ==
        (*last).target.to_vector<std::int32_t>());
}

TEST_CASE("an iterator's copy that is behind the others does not take its loader's position back") {
  for (const std::int64_t ahead : {0, 1, 3}) {
    DataLoader loader(counting(12), {.batch = 2, .shuffle = Seed{1}, .ahead = ahead});
    auto first = loader.begin();
    auto behind = first;
    std::vector<Order> batches;
    for (int i = 0; i < 3; ++i, ++first)
      batches.push_back((*first).target.to_vector<std::int32_t>());
    const Resumable::Position position = loader.position();
    CHECK(position.at("position") == "3");
    for (int i = 0; i < 3; ++i, ++behind) {
      CHECK((*behind).target.to_vector<std::int32_t>() == batches[static_cast<std::size_t>(i)]);
      CHECK(loader.position() == position);
    }
    CHECK((*behind).target.to_vector<std::int32_t>() == (*first).target.to_vector<std::int32_t>());
    CHECK(loader.position().at("position") == "4");
  }
}

TEST_CASE(
    "a loader that shuffles without a seed draws a key when it is made, and none if it fails") {
  const auto epochs = [](int count) {
    std::vector<Order> orders;
    for (int epoch = 0; epoch < count; ++epoch) {
      Order order;
      for (const Batch& batch : DataLoader(counting(50), {.batch = 50, .shuffle = true}))
        order = batch.target.to_vector<std::int32_t>();
      orders.push_back(std::move(order));
    }
    return orders;
  };
  set_seed(Seed{7});
  const detail::Generator start = detail::generator();
  const std::vector<Order> orders = epochs(3);
  CHECK(detail::generator().counter == start.counter + 3);
  CHECK(orders[0] != orders[1]);
  CHECK(orders[1] != orders[2]);
  set_seed(Seed{7});
  CHECK(epochs(3) == orders);

  set_seed(Seed{7});
  CHECK_THROWS(DataLoader(counting(50), {.batch = 0, .shuffle = true}));
  const Device device = Device::simulated("cpu", std::size_t{1} << 30);
  device.runtime().allocator().fail_allocation_after(0);
  CHECK_THROWS(DataLoader(counting(50), {.batch = 50, .shuffle = true, .device = device}));
  DataLoader(counting(50), {.shuffle = Seed{}});
  DataLoader(counting(50), {.shuffle = false});
  CHECK(detail::generator().counter == start.counter);
  DataLoader first(counting(50), {.batch = 7, .shuffle = true}),
      second(counting(50), {.batch = 7, .shuffle = true});
  CHECK(pass(first) != pass(second));
  second.resume(first.position());
  CHECK(pass(second) == pass(first));
}

TEST_CASE("a position fits loaders that cut and shuffle alike, and no others") {
  const DataLoaderOptions options{.batch = 4, .shuffle = Seed{1}};
  const Resumable::Position position = DataLoader(counting(10), options).position();
  const auto check = [&](std::int64_t samples, const DataLoaderOptions& of) {
    DataLoader(counting(samples), of).check(position, "file");
  };
  check(10, {.batch = 4, .shuffle = Seed{2}});
  CHECK_ERROR(check(10, {.batch = 4, .shuffle = Seed{1}, .drop_last = true}), FileError,
              "file was saved with a loader of");
  CHECK_ERROR(check(10, {.batch = 4}), FileError, "file was saved with a loader of");
  CHECK_ERROR(check(10, {.batch = 5, .shuffle = Seed{1}}), FileError, "was saved with a loader of");
  CHECK_ERROR(check(11, options), FileError, "was saved with a loader of");

  const tests::TemporaryFolder folder;
  const Parameters params(Device::cpu());
  params.declare("w", {}, initializers::zeros());
  DataLoader saved(counting(10), options), other(counting(11), options);
  params.save(folder.path("with"), saved);
  params.save(folder.path("without"));
  CHECK_ERROR(params.load(folder.path("with"), other), FileError, tests::line(__LINE__));
  CHECK_ERROR(params.load(folder.path("without"), saved), FileError, tests::line(__LINE__));
}

TEST_CASE("a position that is damaged is refused and says so") {
  DataLoader loader(counting(9), {.batch = 3, .shuffle = Seed{1}});
  const Resumable::Position good = loader.position();
  loader.check(good, "file");
  const auto refuses = [&](const char* name, const char* text, const char* why) {
    Resumable::Position bad = good;
    bad[name] = text;
    CHECK_ERROR(loader.check(bad, "the_file"), FileError, why);
    CHECK_ERROR(loader.check(bad, "the_file"), FileError, "the_file");
  };
  for (const char* name : {"pass", "position", "samples", "batch", "drop_last", "shuffle"}) {
    refuses(name, "", "damaged");
    refuses(name, "three", "damaged");
    refuses(name, "3.5", "damaged");
    Resumable::Position bad = good;
    bad.erase(name);
    CHECK_THROWS_AS(loader.check(bad, "file"), FileError);
  }
  refuses("pass", "99999999999999999999", "damaged");
  refuses("pass", "9223372036854775808", "damaged");  // above any pass()
  refuses("position", "3", "batch 3 of 3");
  refuses("position", "-1", "batch -1 of 3");
}
