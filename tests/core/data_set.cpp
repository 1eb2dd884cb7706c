#include "ebb/core/data/data_set.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include "ebb/core/base/error.h"
#include "ebb/core/data/data_loader.h"
#include "ebb/core/device/runtime.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/counting.h"
#include "ebb/tests/core/temporary_folder.h"

namespace {

using namespace ebb;
using ebb::tests::TemporaryFolder;
using tests::counting;
using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;

// An IDX file of u8 with these dimensions and values.
std::string idx(std::initializer_list<unsigned> dims, std::string_view values) {
  std::string text = {0, 0, 8, static_cast<char>(dims.size())};
  for (const unsigned size : dims)
    for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(size >> shift & 0xff);
  return text.append(values);
}

}  // namespace

TEST_CASE("a CSV that makes no data set is refused, with file, line and column") {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& text, const std::string& why) {
    const std::string name = folder.file("bad.csv", text);
    CHECK_ERROR(DataSet::csv(name, {.label = "y"}), FileError, name + why);
  };
  refuses("a,b\n1,2\n", ": has no column 'y'; it has 'a', 'b'");
  refuses("y\n1\n", ": has no column but the label");
  refuses("a,y\n", ": has no lines below its header");
  refuses("a,y\n1,2\nx,2\n",
          ":3: column 'a': 'x' is not a number; a column of text is named in .codes");
  refuses("a,y\n1,x\n", ":2: column 'y': 'x' is not a number; a column of text is named in .codes");
  refuses("a,y\n1,2.5\n", ":2: column 'y': '2.5' is not a whole number");
}

TEST_CASE("a data set of IDX files has one row of pixels for each image") {
  const TemporaryFolder folder;
  const DataSet data =
      DataSet::idx(folder.file("images", idx({2, 1, 3}, "\x01\x02\x03\xff\x05\x06")),
                   folder.file("labels", idx({2}, "\x07\x09")));
  CHECK(data.inputs().shape() == Shape{2, 3});
  CHECK(data.inputs().to_vector<float>() == Floats{1, 2, 3, 255, 5, 6});
  CHECK(data.targets().to_vector<std::int32_t>() == Ints{7, 9});
}

TEST_CASE("IDX files larger than what is read at once lose nothing") {
  const TemporaryFolder folder;
  std::string values(100 * 1000, '\0');
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<char>(i * 7 % 256);
  const DataSet data = DataSet::idx(folder.file("images", idx({1000, 10, 10}, values)),
                                    folder.file("labels", idx({1000}, std::string(1000, 'x'))));
  const Floats inputs = data.inputs().to_vector<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    REQUIRE(inputs[i] == static_cast<float>(i * 7 % 256));
}

TEST_CASE("an IDX file that is damaged, compressed or of another kind is refused") {
  const TemporaryFolder folder;
  const std::string labels = folder.file("labels", idx({2}, "ab"));
  const auto refuses = [&](const std::string& text, const std::string& why) {
    const std::string name = folder.file("images", text);
    CHECK_ERROR(DataSet::idx(name, labels), FileError, name + ": " + why);
  };
  refuses("", "is no IDX file");
  refuses("\x1f\x8b\x08\x08", "is compressed; unpack it with gunzip");
  refuses("image", "is no IDX file");
  refuses(idx({2}, "ab"), "has type 8 and 1 dimensions");
  refuses(std::string("\0\0\x0d\x03", 4), "has type 13 and 3 dimensions");
  refuses(idx({2, 1, 1}, "").substr(0, 12), "ends inside its dimensions");
  refuses(idx({2, 1, 1}, "a"), "has 1 bytes of values, fewer than");
  refuses(idx({2, 1, 1}, "abc"), "has 3 bytes of values, where its dimensions call for 2");
  refuses(idx({4000000000, 4000000000, 4000000000}, "abc"), "has 3 bytes of values, fewer than");
  refuses(idx({0, 4000000000, 4000000000}, ""), "has a dimension of size 0");
  CHECK_ERROR(DataSet::idx(folder.file("images", idx({3, 1, 1}, "abc")), labels), FileError,
              "labels: has 2 labels for the 3 images");
  CHECK_ERROR(DataSet::idx(folder.path("none"), labels), FileError, "none: cannot be opened");
}

TEST_CASE("a split holds out exactly the rounded fraction, and no sample is lost or doubled") {
  for (const std::int64_t count : {1, 2, 7, 100, 1797})
    for (const double fraction : {0.0, 0.2, 0.5, 0.99, 1.0})
      for (const std::uint64_t seed : {0u, 1u, 2u}) {
        const auto [rest, held_out] = counting(count).split(fraction, Seed{seed});
        REQUIRE(held_out.size() == std::llround(fraction * static_cast<double>(count)));
        const Ints a = tests::targets_of(rest.inputs(), rest.targets());
        const Ints b = tests::targets_of(held_out.inputs(), held_out.targets());
        Ints all;  // both are in order
        std::merge(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
        REQUIRE(all == counting(count).targets().to_vector<std::int32_t>());
      }
}

TEST_CASE("a split depends on its seed and on nothing else") {
  const auto held_out = [](std::uint64_t seed) {
    return counting(100).split(0.2, Seed{seed}).second.targets().to_vector<std::int32_t>();
  };
  CHECK(held_out(5) == held_out(5));
  CHECK(held_out(5) != held_out(6));
  for (const double wrong : {-0.1, 1.1, std::nan("")})
    CHECK_ERROR(counting(3).split(wrong, {}), Error, "between 0 and 1");
}

TEST_CASE("a split and the first shuffle of one seed are not the same draw") {
  // Otherwise a loader over the whole set would begin with exactly the samples that were held out.
  for (const std::uint64_t seed : {0u, 5u}) {
    const DataSet data = counting(100);
    const Ints held_out = data.split(0.5, Seed{seed}).second.targets().to_vector<std::int32_t>();
    DataLoader loader(data, {.batch = 50, .shuffle = Seed{seed}});
    Ints first = (*loader.begin()).target.to_vector<std::int32_t>();
    std::sort(first.begin(), first.end());
    CHECK(first != held_out);
  }
}

TEST_CASE("scaling copies the inputs and leaves the targets alone") {
  const DataSet data = counting(3);
  const DataSet half = data.scaled(0.5);
  CHECK(half.inputs().to_vector<float>() == Floats{0, 0.5, 0.5, 1, 1, 1.5});
  CHECK(data.inputs().to_vector<float>() == Floats{0, 1, 1, 2, 2, 3});
  CHECK(half.targets().to_vector<std::int32_t>() == Ints{0, 1, 2});
  const DataSet bytes(Tensor::from(std::vector<std::uint8_t>{1, 2}, {2, 1}), Tensor::from({0, 1}));
  CHECK_ERROR(bytes.scaled(2), Error, "scales inputs of f32 or f64");
}

TEST_CASE(
    "standardized inputs have mean 0 and deviation 1, and constant columns are only shifted") {
  Floats values;
  for (int i = 0; i < 50; ++i)
    values.insert(values.end(),
                  {static_cast<float>(i % 7), 0.1f, 1000 + std::sin(static_cast<float>(i))});
  const DataSet data(Tensor::from(values, {50, 3}), Tensor::zeros({50}, DType::i32));
  const Floats result = data.standardized(data).inputs().to_vector<float>();
  for (std::size_t column = 0; column < 3; ++column) {
    double sum = 0, squares = 0;
    for (std::size_t row = 0; row < 50; ++row) {
      const double value = static_cast<double>(result[3 * row + column]);
      sum += value;
      squares += value * value;
    }
    CHECK(std::abs(sum / 50) < 1e-6);
    CHECK(squares / 50 == tests::Approx(column == 1 ? 0 : 1).margin(1e-12).epsilon(1e-5));
  }
  CHECK_ERROR(data.standardized(counting(2)), ShapeError, "same columns");
  CHECK_ERROR(counting(2).standardized(counting(0)), Error, "reference that has samples");
}

TEST_CASE("inputs standardized on another data set are shifted and scaled by that one's moments") {
  const DataSet training(Tensor::from({{1.f, 10.f}, {3.f, 30.f}}), Tensor::from({0, 1}));
  const DataSet held_out(Tensor::from({{2.f, 10.f}, {5.f, 0.f}, {5.f, 20.f}}),
                         Tensor::from({0, 1, 2}));
  // The training set has means 2 and 20, deviations 1 and 10.
  const DataSet result = held_out.standardized(training);
  CHECK(result.inputs().to_vector<float>() == Floats{0, -1, 3, -2, 3, 0});
  CHECK(result.targets().to_vector<std::int32_t>() == Ints{0, 1, 2});
}

TEST_CASE("what a data set holds is counted as input and is free when it goes") {
  const auto input_bytes = [] {
    return Device::cpu().runtime().allocator().stats().by_category[static_cast<std::size_t>(
        memory::Category::input)];
  };
  const TemporaryFolder folder;
  const std::size_t before = input_bytes().current;
  {
    const DataSet data = DataSet::csv(folder.file("file.csv", "a,y\n1,2\n"), {.label = "y"});
    CHECK(input_bytes().current == before + 2 * 512);
    const auto [rest, held_out] = data.split(1, {});
    CHECK(input_bytes().current == before + 4 * 512);
  }
  CHECK(input_bytes().current == before);
  const std::string bad = folder.file("bad.csv", "a,y\n1,2\n1\n");
  CHECK_ERROR(DataSet::csv(bad, {.label = "y"}), FileError, ":3:");
  CHECK(input_bytes().current == before);
}
