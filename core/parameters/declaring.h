#pragma once
#include <exception>

#include "ebb/core/base/no_copy.h"
#include "ebb/core/parameters/parameters.h"

namespace ebb::detail {

// Opened by a model's constructor: its line for messages. If an exception leaves the scope,
// declarations made in it are taken back: a model that did not fit holds nothing, and its names are
// free. A graph's declarations stay.
class Declaring : NoCopy {
 public:
  Declaring(const Parameters& parameters, CallSite site) noexcept;
  ~Declaring();

 private:
  const CallSiteScope at_;
  const int exceptions_ = std::uncaught_exceptions();
  const Parameters& parameters_;
  const std::size_t parameters_before_, states_before_;
};

}  // namespace ebb::detail
