#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ebb/core/base/dtype.h"

namespace ebb {

// File format of a CSV.
struct CsvFormat {
  bool header = true;                  // the first line names the columns; else "0", "1", ...
  std::optional<char> separator = {};  // none: the most frequent of , ; | tab in the first line
  std::optional<char> comment = {};    // lines that begin with it are skipped
};

// Treatment of missing values.
enum class Missing {
  refuse,    // throws FileError with file, line and column
  drop_row,  // the line is left out
  fill,      // the number DataSetCsvOptions::fill
  nan
};

// Categories by column name: the code of a text is its position in the list.
using Categories = std::map<std::string, std::vector<std::string>>;

struct DataSetCsvOptions {
  std::string label = {};                 // column of class numbers: targets [n], i32
  std::vector<std::string> targets = {};  // or several columns: targets [n, columns]
  DType target_dtype = DType::f32;        // of `targets`: f32, i32 or i64
  std::vector<std::string> inputs = {};   // in this order; none: all columns that are no target
  // Text columns. `codes`: a text becomes its number among the column's texts. `one_hot`, for
  // inputs: it becomes one column per text, 1 for this text and 0 for the others.
  std::vector<std::string> codes = {};
  std::vector<std::string> one_hot = {};
  // Categories known beforehand, for example the training set's; other texts in these columns are
  // refused. Columns not listed get the texts that occur, sorted by their bytes.
  Categories categories = {};
  // For numbers among the inputs. Other missing values are refused, unless the row is dropped.
  Missing missing = Missing::refuse;
  double fill = 0;
  // Words that stand for a missing value, beside the empty field.
  std::vector<std::string> missing_words = {"NA", "N/A", "NaN", "nan", "null", "?"};
  CsvFormat format = {};
};

}  // namespace ebb
