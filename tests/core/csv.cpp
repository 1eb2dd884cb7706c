#include "ebb/core/data/csv.h"

#include <cmath>
#include <limits>
#include <random>

#include "ebb/core/base/error.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"

namespace {

using ebb::FileError;
using ebb::detail::CsvReader;
using ebb::tests::TemporaryFolder;
using Records = std::vector<std::vector<std::string>>;

// Returns the header and all records.
Records read_all(const std::string& file) {
  CsvReader reader(file);
  Records records = {reader.columns()};
  while (reader.next()) {
    records.emplace_back();
    for (std::size_t i = 0; i < reader.columns().size(); ++i)
      records.back().emplace_back(reader.field(i));
  }
  return records;
}

}  // namespace

TEST_CASE("a CSV is read alike with LF and CRLF, with and without a last line end or a mark",
          "[host]") {
  const TemporaryFolder folder;
  const Records expected = {{"a", "b c"}, {"1", "x"}, {"", "2"}, {"3", ""}};
  for (const std::string& end : {std::string("\n"), std::string("\r\n")})
    for (const std::string& last : {std::string(), end, end + end})
      for (const std::string& mark : {std::string(), std::string("\xef\xbb\xbf")}) {
        const std::string text =
            mark + end + "a, b c" + end + " 1 ,x" + end + end + ",2" + end + "3," + last;
        CHECK(read_all(folder.file("file", text)) == expected);
      }
}

TEST_CASE("quoted fields of a CSV keep commas, quotes, spaces and line ends", "[host]") {
  const TemporaryFolder folder;
  CHECK(read_all(folder.file("file", "\"a,b\",\"\"\r\n\" x \",\"1\"\"2\r\n3\"\n5\"6,\"\"\"\"")) ==
        Records{{"a,b", ""}, {" x ", "1\"2\r\n3"}, {"5\"6", "\""}});
}

TEST_CASE("a carriage return that ends no line is a part of its field, at a line's beginning too",
          "[host]") {
  const TemporaryFolder folder;
  CHECK(read_all(folder.file("file", "a,b\n\rx,1\r2\n")) == Records{{"a", "b"}, {"\rx", "1\r2"}});
}

TEST_CASE("what is written as a CSV with random fields is read back", "[host]") {
  const TemporaryFolder folder;
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const std::size_t columns = 1 + random() % 4;
    Records records(1 + random() % 5, std::vector<std::string>(columns));
    std::string text;
    for (auto& record : records) {
      for (std::string& field : record) {
        // Now and then a field is longer than the reader's buffer.
        const std::size_t length = random() % 50 == 0 ? 70'000 : random() % 6;
        for (std::size_t i = 0; i < length; ++i) field += "ab,\"\r\n \t"[random() % 8];
        text += &field == record.data() ? "\"" : ",\"";
        for (const char c : field) text += c == '"' ? std::string("\"\"") : std::string(1, c);
        text += '"';
      }
      text += random() % 2 ? "\n" : "\r\n";
    }
    REQUIRE(read_all(folder.file("file", text)) == records);
  }
}

TEST_CASE("a damaged CSV is refused with file, line and what is wrong", "[host]") {
  const TemporaryFolder folder;
  const auto refuses = [&](const std::string& text, const std::string& why) {
    const std::string name = folder.file("bad.csv", text);
    INFO(text);
    CHECK_ERROR(read_all(name), FileError, name + why);
  };
  refuses("", ": is empty, where a header");
  refuses("\r\n\n", ": is empty, where a header");
  refuses("\xef\xbb\xbf", ": is empty, where a header");
  refuses("a,b\n1,2\n\n3\n", ":4: the line has 1 field, the header has 2");
  refuses("a,b\n1,2,3\n", ":2: the line has 3 fields, the header has 2");
  refuses("a,b\n\"1\n2\",3\n4\n", ":4: the line has 1 field");
  refuses("a\n\"1\n2\n", ":2: the line has quotes that never end");
  refuses("a\n\"1\"2\n", ":2: the line has '2' behind the closing quote");
  refuses("a\n\"1\"\r2\n", ":2: the line has '\\x0d' behind the closing quote");
  CHECK_ERROR(read_all(folder.path("none.csv")), FileError, "none.csv: cannot be opened");
  CHECK_ERROR(read_all(folder.path("")), FileError, "is a directory");
}

TEST_CASE("a column that is not there or there twice is refused, with those that are there",
          "[host]") {
  const TemporaryFolder folder;
  const CsvReader reader(folder.file("file.csv", "a,b,a\n"));
  CHECK(reader.column("b") == 1);
  CHECK_ERROR(reader.column("c"), FileError, "file.csv: has no column 'c'; it has 'a', 'b', 'a'");
  CHECK_ERROR(reader.column("a"), FileError, "more than one column 'a'");
}

TEST_CASE("numbers in a CSV are read to the last bit, and everything else is refused", "[host]") {
  const TemporaryFolder folder;
  const auto open = [&](const std::string& text) {
    CsvReader reader(folder.file("n.csv", "key,value\n0,\"" + text + "\"\n"));
    REQUIRE(reader.next());
    return reader;
  };
  const auto number = [&](const std::string& text) { return open(text).number(1); };
  CHECK(number("58.0") == 58.0);
  CHECK(number(" +1e-3 ") == 1e-3);
  CHECK(number("-0.1") == -0.1);
  CHECK(number("1.7976931348623157e308") == 1.7976931348623157e308);
  CHECK(number(".5") == .5);

  const std::string where = "n.csv:2: column 'value': ";
  for (const char* text :
       {"x", "1x", "1 2", "1,5", "0x10", "--1", "+-1", "++1", "+", "-", "1e", "1\n"})
    CHECK_ERROR(number(text), FileError, "is not a number");
  CHECK_ERROR(number("4\x01"), FileError, where + "'4\\x01' is not a number");
  CHECK_ERROR(number(""), FileError, where + "'' is empty");
  CHECK_ERROR(number("  "), FileError, "is empty");
  CHECK_ERROR(number("nan"), FileError, where + "'nan' is not a finite number");
  CHECK_ERROR(number("-inf"), FileError, "'-inf' is not a finite number");
  CHECK_ERROR(number("1e999"), FileError, "'1e999' is beyond the range of numbers");
  CHECK_ERROR(number(std::string(1000, '7') + "x"), FileError,
              where + "'" + std::string(60, '7') + "...' is not a number");
  // Just above the midpoint of two f32. The nearest double is the midpoint itself, so rounding
  // twice would go wrong.
  CHECK(open("1.00000005960464477540000001").number_f32(1) == std::nextafter(1.f, 2.f));
  CHECK(open("-1.00000005960464477540000001").number_f32(1) == -std::nextafter(1.f, 2.f));
  CHECK(open("3.40282350e38").number_f32(1) == std::numeric_limits<float>::max());
  for (const char* tiny : {"1e-60", "-1e-400", "0.1e-999", "+1E-400"})
    CHECK(open(tiny).number_f32(1) == 0);
  CHECK(open("1e-400").number(1) == 0);
  CHECK_ERROR(open("-1e400").number_f32(1), FileError, "'-1e400' is beyond the range of f32");
  CHECK(open("1e-45").number_f32(1) == std::numeric_limits<float>::denorm_min());
  CHECK_ERROR(open("3.4028236e38").number_f32(1), FileError, "is beyond the range of f32");
  CHECK_ERROR(open("1e39").number_f32(1), FileError, "'1e39' is beyond the range of f32");
  CHECK(open("3.0").integer_i32(1) == 3);
  CHECK(open("-2147483648").integer_i32(1) == -2147483648);
  CHECK_ERROR(open("3.5").integer_i32(1), FileError, "'3.5' is not a whole number");
  CHECK_ERROR(open("2147483648").integer_i32(1), FileError, "beyond the range of i32");
}
