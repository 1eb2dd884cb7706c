#include "ebb/core/ops/sequence.h"
#include "ebb/tests/ops/reference.h"

namespace ebb::tests {

void add_sequence_references(std::vector<Reference>& references) {
  references.push_back({&reverse_sequence_op, [](const Application& a) -> Arrays {
                          Array out(a.outputs[0].shape);
                          for_each_index(out.shape, [&](const Index& place) {
                            Index from = place;
                            const auto length = static_cast<std::int64_t>(a[1][place[0]]);
                            if (place[1] < length) from[1] = length - 1 - place[1];
                            out[position(out.shape, place)] = a[0][position(out.shape, from)];
                          });
                          return {out};
                        }});
}

}  // namespace ebb::tests
