#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ebb/core/base/dtype.h"

namespace ebb {

// How a CSV is written.
struct CsvFormat {
  bool header = true;                  // the first line names the columns; else "0", "1", ...
  std::optional<char> separator = {};  // none: that of , ; | and tab which the first line has most
  std::optional<char> comment = {};    // lines that begin with it are skipped
};

// What is done where a value is missing.
enum class Missing {
  refuse,    // throws FileError with file, line and column
  drop_row,  // the line is left out
  fill,      // the number DataSetCsvOptions::fill
  nan
};

// The categories of columns by their names: the code of a text is its position.
using Categories = std::map<std::string, std::vector<std::string>>;

struct DataSetCsvOptions {
  std::string label = {};                 // the column of class numbers: targets [n], i32
  std::vector<std::string> targets = {};  // or columns that are targets [n, columns]
  DType target_dtype = DType::f32;        // of those: f32, i32 or i64
  std::vector<std::string> inputs = {};   // in this order; none: all columns that are no target
  // Columns of text. Each text becomes its number among the column's texts, or as an input a column
  // for each of them, 1 where it is that and else 0.
  std::vector<std::string> codes = {};
  std::vector<std::string> one_hot = {};
  // Known beforehand, as those of the training set are for others: what else is there is refused.
  // Of other columns: the texts that are there, sorted by their bytes.
  Categories categories = {};
  // Of numbers among the inputs. Other values that are missing are refused, or their lines dropped.
  Missing missing = Missing::refuse;
  double fill = 0;
  // What stands for a missing value, beside nothing at all.
  std::vector<std::string> missing_words = {"NA", "N/A", "NaN", "nan", "null", "?"};
  CsvFormat format = {};
};

}  // namespace ebb
