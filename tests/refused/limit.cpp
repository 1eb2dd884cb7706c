// A fraction where bytes are meant: 0.5 is no limit of 0 bytes.
#include "ebb/ebb.h"

using namespace ebb;

void refused(const Device& device, Session& session, const Graph& graph) {
#if defined(DEVICE)
  memory::set_limit(device, 0.5);
#elif defined(CHANGED)
  session.set_memory_limit(0.5);
#elif defined(SESSION)
  session = Session(graph, {.device = device, .memory_limit = 0.5});
#elif defined(THRESHOLD)
  const memory::Watch watch = memory::on_threshold(device, 0.5, [](const memory::Pressure&) {});
#endif
}
