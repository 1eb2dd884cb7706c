// Replaces events.cpp in a build without protobuf.
#include "ebb/core/files/events.h"
#include "ebb/core/files/without_protobuf.h"

namespace ebb::detail {

std::string event_file(const std::string& folder, double, const std::string&) {
  refuse_without_protobuf(folder, "TensorBoard's event files");
}

// Never called: there is no file for it.
std::string event_record(double, std::int64_t, const std::vector<Scalar>&) { return {}; }

}  // namespace ebb::detail
