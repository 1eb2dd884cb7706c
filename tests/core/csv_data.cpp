// Columns of a CSV as numbers, as categories, and with missing values.
#include "ebb/core/data/csv_data.h"

#include <cmath>
#include <limits>
#include <random>

#include "ebb/core/base/error.h"
#include "ebb/core/data/csv.h"
#include "ebb/core/data/time_series.h"
#include "ebb/core/ops/copy.h"
#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"
#include "ebb/tests/line.h"

namespace ebb::tests {
namespace {

using Floats = std::vector<float>;
using Ints = std::vector<std::int32_t>;
using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("columns are chosen by name, in the order that was asked for, and several are targets") {
  const TemporaryFolder folder;
  const std::string file = folder.file("f.csv", "a,b,c,d\n1,2,3,4\n5,6,7,8\n");
  const CsvData some = load_csv(file, {.targets = {"d", "b"}, .inputs = {"c", "a"}});
  CHECK(some.data.inputs().to_vector<float>() == Floats{3, 1, 7, 5});
  CHECK(some.data.targets().shape() == Shape{2, 2});
  CHECK(some.data.targets().to_vector<float>() == Floats{4, 2, 8, 6});
  CHECK(some.inputs == Names{"c", "a"});
  CHECK(some.targets == Names{"d", "b"});
  const CsvData rest = load_csv(file, {.targets = {"b"}});
  CHECK(rest.inputs == Names{"a", "c", "d"});
  CHECK(rest.data.targets().shape() == Shape{2, 1});
  const CsvData label = load_csv(file, {.label = "a", .inputs = {"b"}});
  CHECK(label.data.targets().shape() == Shape{2});
  CHECK(label.data.targets().to_vector<std::int32_t>() == Ints{1, 5});
  const CsvData none = load_csv(file);
  CHECK(none.data.fields().size() == 1);
  CHECK(none.data.inputs().shape() == Shape{2, 4});
  CHECK(csv_columns(file) == Names{"a", "b", "c", "d"});
  const std::string alike = folder.file("alike.csv", "a,a,y\n1,2,3\n");
  CHECK(load_csv(alike, {.label = "y"}).data.inputs().to_vector<float>() == Floats{1, 2});
  CHECK_ERROR(load_csv(alike, {.inputs = {"a"}}), FileError, "more than one column 'a'");
}

TEST_CASE("targets are numbers of the dtype that was asked for, to the last bit") {
  const TemporaryFolder folder;
  const std::string file = folder.file("f.csv", "x,y\n1,+9007199254740993\n2,-4\n3,5.0\n");
  const DataSet wide = DataSet::csv(file, {.targets = {"y"}, .target_dtype = DType::i64});
  CHECK(wide.targets().to_vector<std::int64_t>() ==
        std::vector<std::int64_t>{9007199254740993, -4, 5});
  CHECK_ERROR(DataSet::csv(file, {.targets = {"y"}, .target_dtype = DType::i32}), FileError,
              "f.csv:2: column 'y': '+9007199254740993' is beyond the range of i32");
  CHECK_ERROR(DataSet::csv(file, {.targets = {"y"}, .target_dtype = DType::f64}), Error,
              "targets of a CSV are f32, i32 or i64, not f64");
  const std::string huge = folder.file("h.csv", "x,y\n1,1e300\n");
  CHECK_ERROR(DataSet::csv(huge, {.targets = {"y"}, .target_dtype = DType::i64}), FileError,
              "beyond the range of i64");
  const auto whole = [&](const std::string& text, DType dtype) {
    const std::string name = folder.file("w.csv", "x,y\n1," + text + "\n");
    const Tensor y = DataSet::csv(name, {.targets = {"y"}, .target_dtype = dtype}).targets();
    return cast(y, DType::i64).item<std::int64_t>();
  };
  CHECK(whole("2147483647", DType::i32) == 2147483647);
  CHECK_ERROR(whole("-2147483649", DType::i32), FileError, "is beyond the range of i32");
  CHECK(whole("9223372036854775807", DType::i64) == std::numeric_limits<std::int64_t>::max());
  CHECK(whole("9007199254740991.0", DType::i64) == 9007199254740991);
  CHECK_ERROR(whole("9007199254740992.0", DType::i64), FileError, "or not exact");
}

TEST_CASE("texts become their number among the column's texts, whatever the order of the lines") {
  const TemporaryFolder folder;
  const std::string file =
      folder.file("f.csv", "kind,size,y\n\"red, dark\",1,b\nblue,2,a\n\"red, dark\",3,c\n");
  const CsvData read = load_csv(file, {.label = "y", .codes = {"kind", "y"}});
  CHECK(read.data.inputs().to_vector<float>() == Floats{1, 1, 0, 2, 1, 3});
  CHECK(read.data.targets().to_vector<std::int32_t>() == Ints{1, 0, 2});
  CHECK(read.categories == Categories{{"kind", {"blue", "red, dark"}}, {"y", {"a", "b", "c"}}});

  const CsvData hot = load_csv(file, {.label = "y", .codes = {"y"}, .one_hot = {"kind"}});
  CHECK(hot.data.inputs().shape() == Shape{3, 3});
  CHECK(hot.data.inputs().to_vector<float>() == Floats{0, 1, 1, 1, 0, 2, 0, 1, 3});
  CHECK(hot.inputs == Names{"kind=blue", "kind=red, dark", "size"});
}

TEST_CASE("the categories of one file serve another, which has no others") {
  const TemporaryFolder folder;
  const CsvData training = load_csv(folder.file("a.csv", "kind,y\nred,1\ngreen,2\nblue,3\n"),
                                    {.label = "y", .one_hot = {"kind"}});
  const DataSetCsvOptions options{
      .label = "y", .one_hot = {"kind"}, .categories = training.categories};
  const CsvData test = load_csv(folder.file("b.csv", "kind,y\nred,1\n"), options);
  CHECK(test.inputs == training.inputs);
  CHECK(test.data.inputs().to_vector<float>() == Floats{0, 0, 1});
  CHECK_ERROR(
      load_csv(folder.file("c.csv", "kind,y\nred,1\ngren,1\n"), options), FileError,
      "c.csv:3: column 'kind': 'gren' is none of its categories, which are green, red, blue");
  // Given categories are coded in their given order.
  const CsvData given =
      load_csv(folder.file("d.csv", "kind,y\nlow,1\nhigh,1\n"),
               {.label = "y", .codes = {"kind"}, .categories = {{"kind", {"low", "high"}}}});
  CHECK(given.data.inputs().to_vector<float>() == Floats{0, 1});
}

TEST_CASE("a value that is missing is refused, filled, NaN, or its line is dropped") {
  const TemporaryFolder folder;
  const std::string file = folder.file("f.csv", "a,b,y\n1,,0\nNA,2,1\n3,4,2\n\" \",?,3\n");
  const auto with = [&](Missing missing) {
    return DataSet::csv(file, {.label = "y", .missing = missing, .fill = -1});
  };
  CHECK_ERROR(with(Missing::refuse), FileError,
              "f.csv:2: column 'b': '' is empty, where a number should be");
  CHECK(with(Missing::fill).inputs().to_vector<float>() == Floats{1, -1, -1, 2, 3, 4, -1, -1});
  const DataSet kept = with(Missing::drop_row);
  CHECK(kept.inputs().to_vector<float>() == Floats{3, 4});
  CHECK(kept.targets().to_vector<std::int32_t>() == Ints{2});
  const Floats values = with(Missing::nan).inputs().to_vector<float>();
  for (std::size_t i = 0; i < values.size(); ++i)
    CHECK(std::isnan(values[i]) == (i == 1 || i == 2 || i == 6 || i == 7));
  CHECK_ERROR(DataSet::csv(file, {.label = "y", .missing_words = {}}), FileError, "is empty");
  CHECK_ERROR(
      DataSet::csv(folder.file("w.csv", "a,y\nNA,1\n"), {.label = "y", .missing_words = {}}),
      FileError, "'NA' is not a number");
}

TEST_CASE("a target or a text that is missing is refused unless its line is dropped") {
  const TemporaryFolder folder;
  const std::string target = folder.file("t.csv", "a,y\n1,\n2,2\n");
  const std::string text = folder.file("s.csv", "a,y\n,1\nx,2\n");
  for (const Missing missing : {Missing::refuse, Missing::fill, Missing::nan}) {
    CHECK_ERROR(DataSet::csv(target, {.label = "y", .missing = missing}), FileError,
                "t.csv:2: column 'y': '' is empty, where a number should be");
    CHECK_ERROR(DataSet::csv(text, {.label = "y", .codes = {"a"}, .missing = missing}), FileError,
                "s.csv:2: column 'a': '' is empty, where a text should be");
    CHECK_ERROR(DataSet::csv(target, {.label = "y", .codes = {"y"}, .missing = missing}), FileError,
                "t.csv:2: column 'y': '' is empty, where a text should be");
  }
  CHECK(DataSet::csv(target, {.label = "y", .missing = Missing::drop_row}).size() == 1);
  // A text on a dropped line is no category.
  const std::string both = folder.file("b.csv", "a,b,y\nx,,1\nz,1,2\n");
  const CsvData kept = load_csv(both, {.label = "y", .codes = {"a"}, .missing = Missing::drop_row});
  CHECK(kept.categories == Categories{{"a", {"z"}}});
  CHECK_ERROR(load_csv(folder.file("n.csv", "a,y\n,1\n"), {.missing = Missing::drop_row}),
              FileError, "has no line without a missing value");
}

TEST_CASE("a CSV without a header has its columns by number") {
  const TemporaryFolder folder;
  const std::string file = folder.file("f.csv", "\xef\xbb\xbf\n1,2,3\r\n\r\n4,5,6\r\n");
  const CsvData read = load_csv(file, {.label = "2", .format = {.header = false}});
  CHECK(read.data.inputs().to_vector<float>() == Floats{1, 2, 4, 5});
  CHECK(read.data.targets().to_vector<std::int32_t>() == Ints{3, 6});
  CHECK(read.inputs == Names{"0", "1"});
  CHECK_ERROR(load_csv(folder.file("g.csv", "1,2\n3\n"), {.format = {.header = false}}), FileError,
              "g.csv:2: the line has 1 field, the first line has 2");
  CHECK_ERROR(load_csv(folder.file("e.csv", ""), {.format = {.header = false}}), FileError,
              "e.csv: is empty");
}

TEST_CASE("separators are found or given, and comments are skipped") {
  const TemporaryFolder folder;
  for (const char separator : {',', ';', '\t', '|'}) {
    const std::string s(1, separator);
    std::string other = separator == ',' ? ";" : ",";
    const std::string text = "# what, it; is|for\n\"a" + other + other + other + "\"" + s + "b" +
                             s + "y\n1" + s + "2" + s + "3\n# no line\n4" + s + "5" + s + "6\n";
    const CsvData read =
        load_csv(folder.file("f.csv", text), {.label = "y", .format = {.comment = '#'}});
    CHECK(read.data.inputs().to_vector<float>() == Floats{1, 2, 4, 5});
    CHECK(read.inputs.front() == "a" + other + other + other);
  }
  const std::string quoted = folder.file("q.csv", "\"a\n# b\";y\n1;2\n");
  CHECK(load_csv(quoted, {.format = {.comment = '#'}}).inputs ==
        std::vector<std::string>{"a\n# b", "y"});
  const std::string spaces = folder.file("s.csv", "a b\n1 2\n");
  CHECK(load_csv(spaces, {.format = {.separator = ' '}}).data.inputs().to_vector<float>() ==
        Floats{1, 2});
  CHECK(load_csv(folder.file("c.csv", "a;b\n1;2\n"), {.format = {.separator = ';'}}).inputs ==
        Names{"a", "b"});
  for (const char wrong : {'"', '\n', '\r', '\xe9'})
    CHECK_ERROR(load_csv(spaces, {.format = {.separator = wrong}}), Error,
                "[csv] fields cannot be separated by");
}

TEST_CASE("what is asked of a CSV that cannot be is refused by the caller's line") {
  const TemporaryFolder folder;
  const std::string file = folder.file("f.csv", "alpha,beta,y\n1,2,3\n");
  CHECK_ERROR_HERE(DataSet::csv(file, {.label = "alfa"}), FileError,
                   "f.csv: has no column 'alfa'; it has 'alpha', 'beta', 'y'");
  CHECK_ERROR(load_csv(file, {.inputs = {"x"}}), FileError, line(__LINE__));
  CHECK_ERROR(load_csv(file, {.codes = {"bet"}}), FileError, "no column 'bet'; it has 'beta'");
  CHECK_ERROR(load_csv(file, {.inputs = {"y"}, .codes = {"beta"}}), Error,
              "neither input nor target: 'beta'");
  CHECK_ERROR(load_csv(file, {.label = "y", .targets = {"y"}}), Error,
              "a label or targets, not both");
  CHECK_ERROR(load_csv(file, {.label = "y", .one_hot = {"y"}}), Error, "is not one_hot: 'y'");
  CHECK_ERROR(load_csv(folder.file("t.csv", "a\nx\n")), FileError, line(__LINE__));
  CHECK_ERROR(csv_columns(folder.path("none")), FileError, line(__LINE__));
  CHECK_ERROR(TimeSeries::csv(file, {.value = "gamma"}), FileError, line(__LINE__));
}

TEST_CASE("random bytes are data of a CSV, with texts and numbers missing, or refused", "[host]") {
  const TemporaryFolder folder;
  std::mt19937 random(7);
  int read = 0;
  for (int round = 0; round < 500; ++round) {
    const auto field = [&] {
      constexpr const char* fields[] = {"1", "2", " 12 ", "\"1\"", "\"x,\n\"", "a", "", "NA"};
      return fields[random() % (random() % 4 ? 4 : std::size(fields))];
    };
    std::string text = "a,b\n";
    for (std::size_t i = random() % 5; i > 0; --i)
      text += field() + std::string(",") + field() + "\n";
    if (random() % 4 == 0) text[random() % text.size()] = ",\n\r\" ;#"[random() % 7];
    if (random() % 4 == 0) text[random() % text.size()] = static_cast<char>(random());
    const std::string name = folder.file("random", text);
    DataSetCsvOptions options{
        .label = "b", .codes = {"a"}, .missing = static_cast<Missing>(random() % 4)};
    if (random() % 2) options.codes = {"a", "b"};
    if (random() % 2) options.format.separator = ',';
    try {
      const CsvData data = load_csv(name, options);
      REQUIRE(data.data.size() > 0);
      const auto most = static_cast<float>(data.categories.at("a").size());
      for (const float code : data.data.inputs().to_vector<float>())
        REQUIRE((code >= 0 && code < most));
      ++read;
    } catch (const FileError& error) {
      REQUIRE(std::string(error.what()).starts_with(name + ":"));
    }
  }
  CHECK(read > 100);
}

}  // namespace ebb::tests
