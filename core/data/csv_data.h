#pragma once
#include <string>
#include <vector>

#include "ebb/core/data/data_set.h"

namespace ebb {

// What was read from a CSV, and what its columns are.
struct CsvData {
  DataSet data;
  std::vector<std::string> inputs;   // "age", "color=red": one name for each column of the inputs
  std::vector<std::string> targets;  // likewise
  Categories categories;             // of all columns of text
};

// DataSet::csv with the names. Throws as it.
//
//   const CsvData training = load_csv("training.csv", {.label = "species", .codes = {"species"}});
//   const DataSet test = DataSet::csv("test.csv", {.label = "species", .codes = {"species"},
//                                                  .categories = training.categories});
CsvData load_csv(const std::string& file, const DataSetCsvOptions& options = {},
                 CallSite site = CallSite::here());

}  // namespace ebb
