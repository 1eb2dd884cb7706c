// Training data of the writers: windows of a text, and the same windows one character later.
#include <cmath>
#include <fstream>
#include <numeric>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/examples/common/text.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"

namespace ebb::tests {
namespace {

using Codes = std::vector<std::int32_t>;

Codes counted(std::size_t count) {
  Codes codes(count);
  std::iota(codes.begin(), codes.end(), 0);
  return codes;
}

// A field of all samples, concatenated.
Codes all_of(const SampleReader& reader, std::size_t field) {
  const auto length = static_cast<std::size_t>(reader.fields.at(field).shape[0]);
  Codes all(static_cast<std::size_t>(reader.size) * length);
  for (std::size_t sample = 0; sample * length < all.size(); ++sample)
    reader.read(static_cast<std::int64_t>(sample), field, all.data() + sample * length);
  return all;
}

}  // namespace

TEST_CASE("windows begin a stride apart, to the last that has something behind it") {
  const Codes codes = counted(11);
  const SampleReader whole = examples::windows(codes, 4, 3);
  CHECK(all_of(whole, 0) == Codes{0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9});
  CHECK(all_of(whole, 1) == Codes{1, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10});
  CHECK(examples::windows(std::span(codes).first(10), 4, 3).size == 2);
  CHECK(examples::windows(std::span(codes).first(5), 4, 3).size == 1);
  CHECK_ERROR(examples::windows(std::span(codes).first(4), 4, 3), Error,
              "a part has 4 characters, fewer than 5");
  CHECK_ERROR(examples::write({"a", {}, {0, 0}}, 3, {}), Error, "fewer than 3");
}

TEST_CASE("rows of columns go on where the row before them ended, each in its column") {
  const Codes codes = counted(16);  // three columns of five; the last code is in none
  const SampleReader rows = examples::rows_of_columns(codes, 3, 2);
  CHECK(all_of(rows, 0) == Codes{0, 1, 5, 6, 10, 11, 2, 3, 7, 8, 12, 13});
  CHECK(all_of(rows, 1) == Codes{1, 2, 6, 7, 11, 12, 3, 4, 8, 9, 13, 14});
  CHECK(examples::rows_of_columns(std::span(codes).first(14), 3, 2).size == 3);
}

TEST_CASE("a text has ten characters at least, and the last tenth is held out") {
  const TemporaryFolder folder;
  const std::string file = folder.path("text");
  const auto read = [&](const char* characters) {
    { std::ofstream(file) << characters; }
    return examples::read_text(file);
  };
  const examples::Text text = read("cabbage cab");
  CHECK(text.characters == " abceg");
  CHECK(text.training == Codes{3, 1, 2, 2, 1, 5, 4, 0, 3, 1});
  CHECK(text.held_out == Codes{2});
  CHECK(read("0123456789").classes() == 10);
  CHECK_ERROR(read("012345678"), FileError, "cannot be read as a text");
  CHECK_ERROR(examples::read_text(folder.path("none")), FileError, "cannot be read as a text");
  CHECK(examples::in_bits(std::log(4)) == Approx(2));
}

}  // namespace ebb::tests
