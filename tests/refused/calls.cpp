// What could be meant in two ways, and the way out that the compiler names. check.sh reads this
// file.
#include "ebb/ebb.h"

using namespace ebb;

void refused(const Tensor& x, Graph& graph) {
  layer_norm(x, {.axes = 2});
  layer_norm(x, {.epsilon = 1e-6});
  norm(x, {.p = 1});
  layer_norm(x, {2});        // refused: said by its name: {.axes = 1} is the last axis
  rms_norm(x, x, {1e-6});    // refused: said by its name: {.axes = 1} is the last axis
  norm(x, {1});              // refused: said by its name: {.p = 1} or {.axis
  zeros(2, 3);               // refused: in braces: zeros({2, 3})
  zeros(graph, 2, 3);        // refused: in braces: zeros(graph, {2, 3})
  Parameters params;         // refused: Parameters params(device)
  for (const auto& row : x)  // refused: x[i] for i below
    layer_norm(row);
  Tensor y = x;
  y[0] = x;  // refused: x[0] is a copy: assign(slice
}
