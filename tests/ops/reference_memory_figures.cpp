#include <algorithm>

#include "ebb/core/memory/memory.h"
#include "ebb/core/ops/memory_figures.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {
namespace {

// What the host reads while the result is still there.
Reference figure(const OpDef& op, std::size_t (*read)(const memory::Stats&)) {
  return {&op, [read](const Application&) -> Arrays {
            Array out{Shape{}};
            out[0] = static_cast<double>(read(memory::stats(Device::cpu())));
            return {out};
          }};
}

}  // namespace

void add_memory_figure_references(std::vector<Reference>& references) {
  references.push_back(
      figure(bytes_in_use_op, [](const memory::Stats& s) { return s.allocated.current; }));
  references.push_back(
      figure(max_bytes_in_use_op, [](const memory::Stats& s) { return s.allocated.peak; }));
  references.push_back(figure(bytes_limit_op, [](const memory::Stats& s) {
    return std::min(s.limit, s.device_total);
  }));
}

}  // namespace ebb::tests
