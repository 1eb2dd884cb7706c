#include "ebb/examples/common/problem.h"

#include <fstream>

namespace examples {

std::unique_ptr<Problem> make_problem(const Options& options) {
  return options.model == "lstm" ? forecasting(options) : classification(options);
}

std::string last_column(const std::string& file) {
  std::string header;
  std::getline(std::ifstream(file), header);
  header.erase(0, header.rfind(',') + 1);
  std::erase_if(header, [](char c) { return c == '"' || c == '\r'; });
  return header;
}

}  // namespace examples
