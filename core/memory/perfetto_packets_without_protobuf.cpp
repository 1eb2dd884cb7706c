// Replaces perfetto_packets.cpp in a build without protobuf.
#include "ebb/core/files/without_protobuf.h"
#include "ebb/core/memory/trace.h"

namespace ebb::memory::detail {

std::unique_ptr<Trace> make_packet_trace(const std::string& path) {
  ebb::detail::refuse_without_protobuf(
      path, "Perfetto's packets (JSON needs none: a name that ends in .json)");
}

}  // namespace ebb::memory::detail
