// What could be meant in two ways, and what a functor cannot hold.
#include <vector>

#include "ebb/custom_operator.h"
#include "ebb/ebb.h"

using namespace ebb;

struct Large {
  static constexpr const char* name = "large";
  double weights[13] = {};
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return x;
  }
};
struct Holder {
  static constexpr const char* name = "holder";
  std::vector<double> weights;
  template <class X>
  EBB_HOST_DEVICE X operator()(X x) const {
    return x;
  }
};

void refused(const Tensor& x) {
  layer_norm(x, {.axes = 2});
  layer_norm(x, {.epsilon = 1e-6});
#if defined(LAYER_NORM)
  layer_norm(x, {2});
#elif defined(RMS_NORM)
  rms_norm(x, x, {2});
#elif defined(PARAMETERS)
  custom_operator(Large{}, x);
#elif defined(NOT_TRIVIAL)
  custom_operator(Holder{}, x);
#endif
}
