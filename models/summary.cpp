#include "ebb/models/summary.h"

#include <algorithm>
#include <array>
#include <ostream>
#include <vector>

#include "ebb/core/memory/figures.h"

namespace ebb {

namespace {

using Row = std::array<std::string, 5>;

Row row(const Parameters::Entry& entry, const char* trained) {
  return {entry.name, entry.tensor.shape().to_string(), name(entry.tensor.dtype()), trained,
          memory::exact_figure(entry.tensor.bytes())};
}

// Aligns all columns on the left but the last, which is on the right.
std::string table(const std::vector<Row>& rows) {
  std::array<std::size_t, 5> widths{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i + 1 < row.size(); ++i)
      text += row[i] + std::string(widths[i] - row[i].size() + 2, ' ');
    text += std::string(widths.back() - row.back().size(), ' ') + row.back() + '\n';
  }
  return text;
}

struct Sum {
  std::size_t numbers = 0, bytes = 0;

  void add(const Tensor& tensor) {
    numbers += static_cast<std::size_t>(tensor.elements());
    bytes += tensor.bytes();
  }
  std::string line(const char* what) const {
    return std::string(what) + ": " + memory::exact_figure(numbers) + " in " +
           memory::exact_figure(bytes) + " bytes\n";
  }
};

}  // namespace

std::string summary(const Parameters& parameters) {
  std::vector<Row> rows = {{"name", "shape", "dtype", "trained", "bytes"}};
  Sum all, trained, slots;
  for (const Parameters::Entry& entry : parameters.entries()) {
    const bool is_trained = parameters.is_trainable(entry);
    rows.push_back(row(entry, is_trained ? "yes" : "frozen"));
    all.add(entry.tensor);
    if (is_trained) trained.add(entry.tensor);
  }
  for (const Parameters::Entry& entry : parameters.states()) {
    rows.push_back(row(entry, "state"));
    all.add(entry.tensor);
  }
  std::string text = table(rows) + all.line("all") + trained.line("trained");
  for (const Parameters::Entry& entry : parameters.slots()) slots.add(entry.tensor);
  return slots.numbers ? text + slots.line("slots of optimizers") : text;
}

std::ostream& operator<<(std::ostream& out, const Parameters& parameters) {
  std::string text = summary(parameters);
  text.pop_back();
  return out << text;
}

}  // namespace ebb
