#pragma once
#include <string>
#include <vector>

#include "ebb/core/data/data_set.h"

namespace ebb {

// A data set read from a CSV, with the names of its columns.
struct CsvData {
  DataSet data;
  std::vector<std::string> inputs;   // "age", "color=red": one name for each column of the inputs
  std::vector<std::string> targets;  // likewise
  Categories categories;             // of all text columns
};

// DataSet::csv with the names of the columns; throws the same errors.
//
//   const CsvData training = load_csv("training.csv", {.label = "species", .codes = {"species"}});
//   const DataSet test = DataSet::csv("test.csv", {.label = "species", .codes = {"species"},
//                                                  .categories = training.categories});
CsvData load_csv(const std::string& file, const DataSetCsvOptions& options = {},
                 CallSite site = CallSite::here());

}  // namespace ebb
