// Data sets made of other sets, of functions and of any number of fields, and their loaders.
#include <algorithm>
#include <atomic>
#include <stdexcept>

#include "ebb/allocator/peak_scope.h"
#include "ebb/core/base/error.h"
#include "ebb/core/data/data_loader.h"
#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/arithmetic.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/shape.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/line.h"

namespace ebb::tests {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;

// Sample i has the fields {i, 10 i}, i, and i / 2 as f64.
DataSet three(std::int32_t count) {
  Floats inputs;
  Ints targets;
  std::vector<double> weights;
  for (std::int32_t i = 0; i < count; ++i) {
    inputs.insert(inputs.end(), {static_cast<float>(i), static_cast<float>(10 * i)});
    targets.push_back(i);
    weights.push_back(i / 2.);
  }
  return DataSet::of(
      {Tensor::from(inputs, {count, 2}), Tensor::from(targets), Tensor::from(weights)});
}

Ints targets_of(const DataSet& data) { return data.targets().to_vector<std::int32_t>(); }

// Checks that the fields of each sample of three() belong together.
void check_rows(const DataSet& data) {
  REQUIRE(data.fields().size() == 3);
  const Ints numbers = targets_of(data);
  const Floats inputs = data.inputs().to_vector<float>();
  const std::vector<double> weights = data.fields()[2].to_vector<double>();
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    CHECK(inputs[2 * i + 1] == static_cast<float>(10 * numbers[i]));
    CHECK(weights[i] == numbers[i] / 2.);
  }
}

}  // namespace

TEST_CASE("parts of a data set have the samples that were asked for, with all their fields") {
  const DataSet data = three(10);
  const auto check = [](const DataSet& part, const Ints& expected) {
    CHECK(targets_of(part) == expected);
    check_rows(part);
  };
  check(data.take(3), {0, 1, 2});
  check(data.skip(7), {7, 8, 9});
  check(data.skip(2).take(2).skip(1), {3});
  check(data.take(0), {});
  check(data.take(11).skip(10), {});
  check(data.skip(11), {});
  check(data.subset(std::vector<std::int64_t>{9, 0, 9}), {9, 0, 9});
  check(data.skip(5).subset(std::vector<std::int64_t>{4, 0}), {9, 5});
  check(data.subset({}), {});
  check(data.take(2).concatenated(data.skip(8)), {0, 1, 8, 9});
  check(data.skip(9).concatenated(std::vector<DataSet>{data.take(0), data.take(1), data.take(2)}),
        {9, 0, 0, 1});
  const auto [rest, held_out] = data.split(0.3, Seed{1});
  check_rows(rest);
  check(rest.concatenated(held_out).take(0), {});
  CHECK(held_out.size() == 3);
}

TEST_CASE("a shuffled data set has every sample once, in an order of its seed's") {
  const DataSet data = three(100);
  const Ints once = targets_of(data.shuffled(Seed{3}));
  CHECK(once == targets_of(data.shuffled(Seed{3})));
  CHECK(once != targets_of(data.shuffled(Seed{4})));
  CHECK(once != targets_of(data));
  Ints sorted = once;
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted == targets_of(data));
  check_rows(data.shuffled(Seed{3}));
}

TEST_CASE("take and skip are views, which keep the memory that they look at") {
  const Device cpu = Device::cpu();
  const std::size_t before = memory::stats(cpu).allocated.current;
  DataSet part = three(1000);
  const std::size_t whole = memory::stats(cpu).allocated.current;
  part = part.skip(900);
  CHECK(memory::stats(cpu).allocated.current == whole);
  part = part.subset(std::vector<std::int64_t>{0});
  CHECK(memory::stats(cpu).allocated.current == before + 3 * 512);
}

TEST_CASE("a data set is generated sample by sample, of any fields") {
  const DataSet data = DataSet::generate(5, [](std::int64_t i) -> Tensors {
    return {Tensor::from({{static_cast<float>(i), 1.f, 2.f}, {3.f, 4.f, 5.f}}),
            Tensor::full({}, static_cast<double>(i), DType::i32)};
  });
  CHECK(data.inputs().shape() == Shape{5, 2, 3});
  CHECK(data.inputs().item<float>({4, 0, 0}) == 4);
  CHECK(data.inputs().item<float>({4, 1, 2}) == 5);
  CHECK(targets_of(data) == Ints{0, 1, 2, 3, 4});
  const auto wrong = [](const auto& sample) {
    return ebb::tests::why_not_thrown<ShapeError>([&] { DataSet::generate(2, sample); },
                                                  "takes samples");
  };
  CHECK(wrong([](std::int64_t i) -> Tensors { return {Tensor::zeros({i})}; }) == "");
  CHECK(wrong([](std::int64_t i) -> Tensors { return Tensors(static_cast<std::size_t>(1 + i)); }) !=
        "");
  CHECK(wrong([](std::int64_t i) -> Tensors {
          return i == 0 ? Tensors{Tensor::zeros({1})}
                        : Tensors{Tensor::zeros({1}), Tensor::zeros({1})};
        }) == "");
  CHECK_ERROR_HERE(DataSet::generate(0, [](std::int64_t) -> Tensors { return {}; }), Error,
                   "at least one sample, not 0");
  const auto one = [](std::int64_t) -> Tensors { return {Tensor::zeros({1})}; };
  CHECK_ERROR(DataSet::generate(std::int64_t{1} << 60, one), ShapeError, line(__LINE__));
  CHECK_ERROR(DataSet::generate(1, [](std::int64_t) -> Tensors { return {Tensor()}; }), Error,
              "samples with values on the CPU");
  CHECK_ERROR(DataSet::generate(1, [](std::int64_t) -> Tensors { return {}; }), Error,
              "at least one field");
  CHECK_ERROR(DataSet::generate(1,
                                [](std::int64_t) -> Tensors {
                                  return {Tensor::zeros({1, 1, 1, 1, 1, 1})};
                                }),
              ShapeError, "no place for the samples' axis");
}

TEST_CASE("a data set is mapped alike whatever is mapped at a time, and keeps no history") {
  const DataSet data = three(10);
  const Tensor weight = Tensor::full({}, 2).with_grad();
  const auto twice = [&](const Tensors& fields) -> Tensors {
    return {fields[0] * weight, fields[1]};
  };
  for (const std::int64_t batch : {1, 3, 10, 1000}) {
    const DataSet mapped = data.mapped(twice, {.batch = batch});
    CHECK(mapped.inputs().item<float>({7, 1}) == 140);
    CHECK(targets_of(mapped) == targets_of(data));
    CHECK(mapped.fields().size() == 2);
    CHECK_FALSE(mapped.inputs().requires_grad());
  }
  CHECK(data.take(0).mapped(twice).inputs().shape() == Shape{0, 2});
  const auto first = [](const Tensors& fields) -> Tensors { return {slice(fields[0], 0, 1)}; };
  CHECK_ERROR(data.mapped(first), ShapeError, "mapped to as many samples, 10, not f32[1, 2]");
  CHECK_ERROR(data.mapped(first, {.batch = 0}), Error, line(__LINE__));
  const auto wider = [](const Tensors& fields) -> Tensors {
    return {Tensor::zeros({fields[0].size(0), fields[0].size(0)})};
  };
  CHECK_ERROR(data.mapped(wider, {.batch = 4}), ShapeError, "takes parts that are alike: field 0");
  bool has_history = true;
  const auto watch = [&](const Tensors& fields) -> Tensors {
    has_history = (fields[0] * weight).requires_grad();
    return {fields[0]};
  };
  static_cast<void>(data.mapped(watch));
  CHECK_FALSE(has_history);
  const int inside = __LINE__ + 2;
  const auto wrong = [](const Tensors& fields) -> Tensors {
    return {fields[0] + Tensor::zeros({7})};
  };
  CHECK_ERROR(data.mapped(wrong), ShapeError, line(inside));
}

TEST_CASE("what makes no data set is refused by the caller's line") {
  const DataSet data = three(4);
  const Tensor three_rows = Tensor::zeros({3}), two_rows = Tensor::zeros({2, 2});
  CHECK_ERROR_HERE(DataSet(three_rows, two_rows), ShapeError, "as many inputs as targets");
  CHECK_ERROR(DataSet(Tensor::full({}, 1), two_rows), ShapeError, "one row a sample");
  const Device twin = Device::simulated("cpu", std::size_t{1} << 30);
  CHECK_ERROR(DataSet(Tensor::zeros({2}, DType::f32, twin), two_rows), Error, "values on the CPU");
  CHECK_ERROR(DataSet::of({three_rows, three_rows, two_rows}), ShapeError,
              "of as many samples each, not f32[3] on cpu and f32[2, 2]");
  CHECK_ERROR(DataSet::of({}), Error, "at least one field " + line(__LINE__));
  CHECK_ERROR(DataSet::of({Tensor()}), Error, line(__LINE__));
  CHECK_ERROR_HERE(DataSet::of({three_rows}).targets(), Error, "has inputs alone, and no targets");
  CHECK_ERROR(data.take(-1), Error, line(__LINE__));
  CHECK_ERROR(data.skip(-1), Error, line(__LINE__));
  for (const std::int64_t sample : {std::int64_t{-1}, std::int64_t{4}})
    CHECK_ERROR(data.subset(std::vector{sample}), Error,
                "has samples 0 to 3, and no " + std::to_string(sample));
  CHECK_ERROR_HERE(data.concatenated(DataSet(three_rows, three_rows)), ShapeError,
                   "as many fields each, not 3 and 2");
  const DataSet other =
      DataSet::of({Tensor::zeros({1, 2}), Tensor::zeros({1}), Tensor::zeros({1}, DType::f64)});
  CHECK_ERROR(data.concatenated(other), ShapeError, "field 1 is i32[4] on cpu and then f32[1]");
}

TEST_CASE("a batch has the fields of its samples, and no others") {
  const DataSet data = three(1000);
  DataLoader loader(data, {.batch = 300});
  CHECK_ERROR((*loader.begin())[3], Error, "has fields 0 to 2, and no 3 " + line(__LINE__));
  DataLoader inputs(DataSet::of({data.inputs()}), {.batch = 600});
  for (const Batch& batch : inputs) {
    CHECK(batch[0].rank() == 2);
    CHECK_FALSE(batch.target.defined());
    CHECK_ERROR(batch[1], Error, "has fields 0 to 0, and no 1");
  }
}

TEST_CASE(
    "a loader reads samples when they are due, in the order and memory of a data set, all fields") {
  const DataSet data = three(1000);
  const Floats inputs = data.inputs().to_vector<float>();
  SampleReader reader{.size = 1000,
                      .fields = {{DType::f32, {2}}, {DType::i32, {}}, {DType::f64, {}}},
                      .read = [&](std::int64_t sample, std::size_t field, void* values) {
                        const auto number = static_cast<std::int32_t>(sample);
                        const double weight = number / 2.;
                        if (field == 0)
                          std::copy_n(&inputs[static_cast<std::size_t>(2 * sample)], 2,
                                      static_cast<float*>(values));
                        else if (field == 1)
                          *static_cast<std::int32_t*>(values) = number;
                        else
                          *static_cast<double*>(values) = weight;
                      }};
  for (const std::int64_t ahead : {0, 1, 3})
    for (const Device& device : {Device::cpu(), Device::best()}) {
      const DataLoaderOptions options{
          .batch = 301, .shuffle = Seed{2}, .device = device, .ahead = ahead};
      const auto run = [&](DataLoader loader) {
        const std::size_t before = memory::stats(device).allocated.current;
        const memory::PeakScope peak(device);
        std::vector<Ints> batches;
        for (int pass = 0; pass < 2; ++pass)
          for (const Batch& batch : loader) {
            check_rows(DataSet::of({batch[0].to(Device::cpu()), batch[1].to(Device::cpu()),
                                    batch[2].to(Device::cpu())}));
            batches.push_back(batch.target.to_vector<std::int32_t>());
          }
        return std::pair(batches, peak.bytes() - before);
      };
      const auto read = run(DataLoader(reader, options));
      CHECK(read == run(DataLoader(data, options)));
      CHECK(read.first.size() == 8);
    }

  // A twin's loader reads nothing.
  SampleReader nothing = reader;
  nothing.read = [](std::int64_t, std::size_t, void*) { throw std::runtime_error("read"); };
  const Device twin = Device::simulated("cpu", std::size_t{1} << 30);
  DataLoader shapes(nothing, {.batch = 400, .device = twin});
  std::int64_t samples = 0;
  for (const Batch& batch : shapes) samples += batch[2].size(0);
  CHECK(samples == 1000);
  DataLoader failing(nothing, {.batch = 400});
  auto first = failing.begin();
  for (int again = 0; again < 2; ++again) CHECK_THROWS_WITH(*first, "read");
}

TEST_CASE("a read that fails ahead is thrown with its batch, which can be asked for once more") {
  std::atomic<bool> fails = true;
  SampleReader reader{.size = 6,
                      .fields = {{DType::i32, {}}},
                      .read = [&](std::int64_t sample, std::size_t, void* values) {
                        if (sample == 3 && fails) throw std::runtime_error("disk");
                        *static_cast<std::int32_t*>(values) = static_cast<std::int32_t>(sample);
                      }};
  for (const Device& device : {Device::cpu(), Device::best()}) {
    fails = true;
    DataLoader loader(reader, {.batch = 2, .device = device, .ahead = 2});
    auto batch = loader.begin();
    CHECK((*batch).input.to_vector<std::int32_t>() == Ints{0, 1});
    ++batch;
    CHECK_THROWS_WITH(*batch, "disk");
    fails = false;
    CHECK((*batch).input.to_vector<std::int32_t>() == Ints{2, 3});
    ++batch;
    CHECK((*batch).input.to_vector<std::int32_t>() == Ints{4, 5});
  }
}

TEST_CASE("a reader without samples, fields or a function is refused") {
  const auto read = [](std::int64_t, std::size_t, void*) {};
  const Spec one{DType::f32, {}};
  CHECK_ERROR_HERE(DataLoader(SampleReader{.size = 0, .fields = {one}, .read = read}), Error,
                   "is empty");
  CHECK_ERROR(DataLoader(SampleReader{.size = 1, .fields = {}, .read = read}), Error,
              "at least one field");
  CHECK_ERROR(DataLoader(SampleReader{.size = 1, .fields = {one}, .read = {}}), Error,
              "a function that reads");
  for (const Shape& shape : {Shape{-1}, Shape{1, 1, 1, 1, 1, 1}})
    CHECK_ERROR(DataLoader(SampleReader{.size = 1, .fields = {{DType::f32, shape}}, .read = read}),
                ShapeError, "less than 6 known dimensions, not f32" + shape.to_string());
}

TEST_CASE("a loader's transform is what is given out, anew in each pass, on the twin too") {
  const DataSet data = three(6);
  const auto noisy = [](const Batch& batch) {
    return Batch{batch.input * 0 + normal_like(batch.input), batch.target};
  };
  std::vector<Floats> passes;
  DataLoader loader(data, {.batch = 4, .transform = noisy});
  for (int pass = 0; pass < 2; ++pass) {
    passes.emplace_back();
    std::int32_t next = 0;
    for (auto [x, y] : loader) {
      for (const float value : x.to_vector<float>()) passes.back().push_back(value);
      for (const std::int32_t target : y.to_vector<std::int32_t>()) CHECK(target == next++);
    }
    CHECK(passes.back().size() == 12);
  }
  CHECK(passes[0] != passes[1]);

  const auto bytes_of = [&](const Device& device) {
    const std::size_t before = memory::stats(device).allocated.current;
    const memory::PeakScope peak(device);
    DataLoader again(data, {.batch = 4, .device = device, .transform = noisy});
    for (auto [x, y] : again) CHECK(x.shape()[1] == 2);
    return peak.bytes() - before;
  };
  CHECK(bytes_of(Device::cpu()) == bytes_of(Device::simulated("cpu", std::size_t{1} << 30)));

  int calls = 0;
  DataLoader failing(data, {.batch = 4, .transform = [&](const Batch& batch) {
                              if (++calls == 1) throw std::runtime_error("once");
                              return batch;
                            }});
  auto first = failing.begin();
  CHECK_THROWS_AS(*first, std::runtime_error);
  CHECK((*first).target.to_vector<std::int32_t>() == Ints{0, 1, 2, 3});
  const Tensor weight = Tensor::full({}, 2).with_grad();
  DataLoader weighted(data, {.transform = [&](const Batch& batch) {
                        return Batch{batch.input * weight, batch.target};
                      }});
  CHECK_FALSE((*weighted.begin()).input.requires_grad());
  DataLoader nothing(data, {.transform = [](const Batch&) { return Batch(); }});
  CHECK_ERROR(*nothing.begin(), Error, "the transform gives no batch");
}

TEST_CASE("the names that a batch comes apart in are its fields: what they let go of is free") {
  const DataSet data = three(4);
  const std::size_t before = memory::stats(Device::cpu()).allocated.current;
  Batch batch{data.inputs().clone(), data.targets().clone()};
  auto& [x, y] = batch;
  x = Tensor();
  CHECK_FALSE(batch.input.defined());
  auto [input, target] = std::move(batch);
  target = Tensor();
  CHECK(memory::stats(Device::cpu()).allocated.current == before);
  CHECK(y.defined() == false);
}

TEST_CASE(
    "a batch of more fields than two does not come apart in two, which would lose the others") {
  const Batch batch{Tensor::zeros({2}), Tensor::zeros({2}), {Tensor::zeros({2})}};
  const auto take_apart = [&] {
    auto [x, y] = batch;
    return x.elements() + y.elements();
  };
  const int run = __LINE__ - 3;
  CHECK_ERROR(take_apart(), Error, "[Batch] has 3 fields and comes apart in two only where");
  CHECK_ERROR(take_apart(), Error, line(run));
  DataLoader loader(three(4), {.batch = 2});
  CHECK_ERROR(
      [&] {
        for (auto [x, y] : loader) static_cast<void>(x);
      }(),
      Error, "batch[1]");
}

TEST_CASE("micro-batches are views of a batch, and together all of it") {
  const DataSet data = three(10);
  DataLoader loader(data, {.batch = 10});
  const Batch batch = *loader.begin();
  const std::size_t before = memory::stats(Device::cpu()).allocated.current;
  for (const std::int64_t rows : {1, 3, 5, 10, 99}) {
    Ints targets;
    for (const Batch& part : micro_batches(batch, rows)) {
      CHECK(part.input.size(0) <= rows);
      CHECK(part[2].size(0) == part.input.size(0));
      for (const std::int32_t target : part.target.to_vector<std::int32_t>()) {
        CHECK(part.input.item<float>({static_cast<std::int64_t>(targets.size()) % rows, 1}) ==
              static_cast<float>(10 * target));
        targets.push_back(target);
      }
    }
    CHECK(targets == targets_of(data));
    CHECK(memory::stats(Device::cpu()).allocated.current == before);
  }
  CHECK(micro_batches({data.inputs(), {}}, 4).size() == 3);
  CHECK(micro_batches({data.take(0).inputs(), {}}, 4).empty());
  CHECK_ERROR_HERE(micro_batches(batch, 0), Error,
                   "[micro_batches] takes parts of at least 1 sample, not 0");
  CHECK_ERROR(micro_batches({}, 1), Error, "takes a batch with samples");
  CHECK_ERROR(micro_batches({data.inputs(), data.take(3).targets()}, 1), ShapeError,
              "as many samples in each field");
}

}  // namespace ebb::tests
