// One test for each row of docs/coming-from.md, whose name is the row's first cell without quotes.
//
//   EBB_SAME("torch.cumsum(x, 1)", cumsum(x[0], 1));   // equal to what the original computed
//   EBB_GIVES("nn.Linear") { ...; return {layer(x[0])}; }  // the same, with more to it
//   EBB_ROW("torch.sign(nan)") { CHECK(...); }         // another value than the original's
//   EBB_PROGRAM("torch.no_grad()") { CHECK(...); }     // ebb alone
//
// What the originals computed is in tests/golden/parity_torch.safetensors (NumPy and PyTorch) and
// parity_tensorflow.safetensors, written by make_parity.py and make_parity_tensorflow.py.
#pragma once
#include <string>
#include <vector>

#include "ebb/ebb.h"
#include "ebb/tests/catch.h"

namespace ebb::tests::parity {

// Names of the two golden files.
const std::vector<std::string>& files();

using Function = Tensors (*)(const Tensors&);

// Values stored for a row, in each golden file that has it.
class Row {
 public:
  explicit Row(std::string name) : name_(std::move(name)) {}

  // Checks that `function` of the stored inputs gives the stored outputs and gradients, in dtype,
  // shape and value. `tolerance` applies to f64, relative to values above 1. For f32 it is at least
  // 1e-5.
  void holds(Function function, double tolerance = 1e-11) const;

  // "x0", "y1" or "g0" from the first file that has this row. stored() says whether there is one.
  Tensor operator[](const std::string& what) const;
  bool stored(const std::string& what) const;

 private:
  std::string name_;
};

// All elements of a tensor of any dtype.
std::vector<double> numbers(const Tensor& x);
// Returns "" where `got` is `wanted`, else a description of the difference. NaN equals NaN, an
// infinity itself.
std::string difference(const Tensor& got, const Tensor& wanted, double tolerance = 1e-11);
// Compares values alone, with any dtypes.
std::string difference_of_values(const std::vector<double>& got, const std::vector<double>& wanted,
                                 double tolerance);

// A row that has a test, for the comparison with the page.
struct Registered {
  std::string name;
  bool is_stored;  // against values of the original
  const char* file;
  int line;
};
std::vector<Registered>& registered();
struct Register {
  Register(const char* name, bool is_stored, const char* file, int line) {
    registered().push_back({name, is_stored, file, line});
  }
};

}  // namespace ebb::tests::parity

#define EBB_PARITY_JOIN_(a, b) a##b
#define EBB_PARITY_JOIN(a, b) EBB_PARITY_JOIN_(a, b)
#define EBB_PARITY_CASE(name, is_stored, id)                                                       \
  static void id(const ::ebb::tests::parity::Row& row);                                            \
  static const ::ebb::tests::parity::Register EBB_PARITY_JOIN(id, _row)(name, is_stored, __FILE__, \
                                                                        __LINE__);                 \
  TEST_CASE(name, "[row]") { id(::ebb::tests::parity::Row(name)); }                                \
  static void id([[maybe_unused]] const ::ebb::tests::parity::Row& row)

#define EBB_ROW(name) EBB_PARITY_CASE(name, true, EBB_PARITY_JOIN(row_, __COUNTER__))
#define EBB_PROGRAM(name) EBB_PARITY_CASE(name, false, EBB_PARITY_JOIN(row_, __COUNTER__))
#define EBB_PARITY_FUNCTION(name, id, ...)                    \
  static Tensors id(const Tensors& x);                        \
  EBB_ROW(name) { row.holds(id __VA_OPT__(, ) __VA_ARGS__); } \
  static Tensors id([[maybe_unused]] const Tensors& x)
// Defines a row by a function of x, and the tolerance if it is not the default.
#define EBB_GIVES(name, ...) \
  EBB_PARITY_FUNCTION(name, EBB_PARITY_JOIN(given_, __COUNTER__) __VA_OPT__(, ) __VA_ARGS__)
#define EBB_SAME(name, ...)                        \
  EBB_GIVES(name) { return Tensors{__VA_ARGS__}; } \
  static_assert(true)
