// What could be meant in two ways, and names that no option has.
#include "ebb/ebb.h"

using namespace ebb;

void refused(const Tensor& x, [[maybe_unused]] Graph& graph) {
  layer_norm(x, {.axes = 2});
  layer_norm(x, {.epsilon = 1e-6});
  norm(x, {.p = 1});
#if defined(LAYER_NORM)
  layer_norm(x, {2});
#elif defined(RMS_NORM)
  rms_norm(x, x, {1e-6});
#elif defined(NORM)
  norm(x, {1});
#elif defined(NO_SUCH_OPTION)
  variance(x, {.ddof = 1});
#elif defined(NO_SUCH_OPTION_OF_AXES)
  flip(x, {.dims = 1});
#elif defined(DIMENSIONS)
  zeros(2, 3);
#elif defined(DIMENSIONS_OF_A_GRAPH)
  zeros(graph, 2, 3);
#elif defined(NOWHERE)
  Parameters params;
#elif defined(ROWS)
  for (const auto& row : x) layer_norm(row);
#elif defined(ELEMENT)
  Tensor y = x;
  y[0] = x;
#endif
}
