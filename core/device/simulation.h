#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "ebb/allocator/category.h"
#include "ebb/core/base/call_site.h"
#include "ebb/core/base/no_copy.h"
#include "ebb/core/base/shape.h"
#include "ebb/core/device/device.h"

namespace ebb {

namespace memory {

// One value that a program reads on a simulated device.
struct ValueRead {
  const char* what = "";   // "item", "to_vector", "print", "DetectNan"
  Spec spec;               // of the tensor
  std::int64_t index = 0;  // of the element, in row-major order
  const char* file = "";   // line that reads
  unsigned line = 0;
};

// Values for what a program reads during a prediction: one number, or a function of each element
// read. Empty: there are none.
class GivenValues {
 public:
  GivenValues() = default;
  GivenValues(double number)  // NOLINT: implicit by design
      : function_([number](const ValueRead&) { return number; }) {}
  template <class Function>
  requires std::is_invocable_r_v<double, Function&, const ValueRead&> GivenValues(Function function)
      : function_(std::move(function)) {}  // NOLINT: implicit by design

  explicit operator bool() const noexcept { return static_cast<bool>(function_); }
  double operator()(const ValueRead& read) const { return function_(read); }

 private:
  std::function<double(const ValueRead&)> function_;
};

// Reads of values at one line.
struct ReadLine {
  Tag tag;                // what reads, and where
  std::size_t count = 0;  // reads, of one element or of many
};

}  // namespace memory

namespace detail {

// Ends a message about a value that a simulated device does not have.
inline constexpr const char* kGiveValues =
    "; memory::predict() with PredictOptions::values gives it one to read";

// Stands in for values while a program is predicted on its twin: gives it values to read, and
// remembers the files that it saves. Used by any thread.
class Simulation {
 public:
  // `outer`: of the prediction that this one is part of; may be null.
  explicit Simulation(memory::GivenValues values, std::shared_ptr<const Simulation> outer = {})
      : values_(std::move(values)), outer_(std::move(outer)) {}

  bool gives_values() const noexcept { return static_cast<bool>(values_); }
  // Writes the values of `count` elements from `first` on, as elements of the dtype, and counts one
  // read. Integers are rounded to the nearest in range; a boolean is whether the value is not 0.
  void read(const char* what, const Spec& spec, std::int64_t first, std::size_t count, void* to,
            CallSite site);
  std::vector<memory::ReadLine> reads() const;

  // Remembers the header of a file in place of the file.
  void save(const std::string& file, std::string header);
  // Header of a file that the program has saved; nothing if it has not.
  std::optional<std::string> saved(const std::string& file) const;

 private:
  const memory::GivenValues values_;
  const std::shared_ptr<const Simulation> outer_;
  mutable std::mutex mutex_;  // guards the members below
  std::vector<memory::ReadLine> reads_;
  std::map<std::string, std::string> headers_;  // by absolute path
};

// A prediction's simulation on a device, for the scope's life. A real device has no use for it.
class SimulationScope : NoCopy {
 public:
  SimulationScope(const Device& twin, const memory::GivenValues& values,
                  std::shared_ptr<const Simulation> outer = {});
  ~SimulationScope();

  std::vector<memory::ReadLine> reads() const { return simulation_->reads(); }

 private:
  const Device twin_;
  const std::shared_ptr<Simulation> simulation_;
  std::shared_ptr<Simulation> before_;
};

}  // namespace detail
}  // namespace ebb
