#include "ebb/core/parameters/declaring.h"

#include "ebb/core/parameters/parameters_state.h"

namespace ebb::detail {

Declaring::Declaring(const Parameters& parameters, CallSite site) noexcept
    : at_(site),
      parameters_(parameters),
      parameters_before_(parameters.state_->parameters.all().size()),
      states_before_(parameters.state_->states.all().size()) {}

Declaring::~Declaring() {
  Parameters::State& state = *parameters_.state_;
  if (std::uncaught_exceptions() > exceptions_) state.shrink(parameters_before_, states_before_);
}

}  // namespace ebb::detail
