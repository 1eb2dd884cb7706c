#include "ebb/core/device/simulation.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "ebb/core/device/runtime.h"
#include "ebb/core/kernels/convert.h"

namespace ebb::detail {

namespace {

std::uint64_t given_element(DType dtype, double value) noexcept {
  return element_of(dtype,
                    is_floating(dtype) || dtype == DType::boolean ? value : std::nearbyint(value));
}

// One name for one file, however the program spells it.
std::string absolute(const std::string& file) {
  std::error_code none;
  const std::filesystem::path path =
      std::filesystem::weakly_canonical(std::filesystem::absolute(file), none);
  return none ? file : path.string();
}

}  // namespace

void Simulation::read(const char* what, const Spec& spec, std::int64_t first, std::size_t count,
                      void* to, CallSite site) {
  {
    const std::lock_guard lock(mutex_);
    const auto is_here = [&](const memory::ReadLine& known) {
      return known.tag.line == site.line && std::string_view(known.tag.file) == site.file &&
             std::string_view(known.tag.operator_name) == what;
    };
    const auto at = std::find_if(reads_.begin(), reads_.end(), is_here);
    ++(at == reads_.end() ? reads_.emplace_back(memory::ReadLine{{what, site.file, site.line}, 0})
                          : *at)
          .count;
  }
  // The function is called without the lock: it may read values itself.
  const std::size_t size = size_of(spec.dtype);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t element = given_element(
        spec.dtype,
        values_({what, spec, first + static_cast<std::int64_t>(i), site.file, site.line}));
    std::memcpy(static_cast<std::byte*>(to) + i * size, &element, size);
  }
}

std::vector<memory::ReadLine> Simulation::reads() const {
  const std::lock_guard lock(mutex_);
  return reads_;
}

void Simulation::save(const std::string& file, std::string header) {
  const std::lock_guard lock(mutex_);
  headers_.insert_or_assign(absolute(file), std::move(header));
}

std::optional<std::string> Simulation::saved(const std::string& file) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = headers_.find(absolute(file)); found != headers_.end())
      return found->second;
  }
  return outer_ ? outer_->saved(file) : std::nullopt;
}

SimulationScope::SimulationScope(const Device& twin, const memory::GivenValues& values,
                                 std::shared_ptr<const Simulation> outer)
    : twin_(twin),
      simulation_(std::make_shared<Simulation>(values, std::move(outer))),
      before_(twin.runtime().set_simulation(simulation_)) {}

SimulationScope::~SimulationScope() { twin_.runtime().set_simulation(std::move(before_)); }

}  // namespace ebb::detail
