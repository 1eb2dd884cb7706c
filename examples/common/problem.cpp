#include "ebb/examples/common/problem.h"

#include "ebb/core/data/csv.h"

namespace examples {

std::unique_ptr<Problem> make_problem(const Options& options) {
  return options.model == "lstm" ? forecasting(options) : classification(options);
}

std::string last_column(const std::string& file) { return ebb::csv_columns(file).back(); }

}  // namespace examples
