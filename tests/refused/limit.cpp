// A fraction where bytes are meant: 0.5 is no limit of 0 bytes. check.sh reads this file.
#include "ebb/ebb.h"

using namespace ebb;

// Each type is refused once.
void refused(const Device& device, Session& session, const Graph& graph) {
  memory::set_limit(device, 0.5);                        // said: is_integral_v<double>
  session.set_memory_limit(0.5f);                        // said: is_integral_v<float>
  session = Session(graph, {.memory_limit = 0.5L});      // said: is_integral_v<long double>
  const auto watch = memory::on_threshold(device, true,  // refused: say memory::Limit::fraction
                                          [](const memory::Pressure&) {});
}
