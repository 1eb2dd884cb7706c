// Replaces summary_writer.cpp in a build without protobuf.
#include "ebb/core/memory/without_protobuf.h"

#include "ebb/core/base/error.h"
#include "ebb/core/files/summary_writer.h"

namespace ebb {

void detail::refuse_without_protobuf(const std::string& path, const char* what) {
  throw Error("[protobuf] " + path + ": this ebb was built without protobuf, by which it writes " +
              what +
              "; install it (Debian: apt-get install protobuf-compiler libprotobuf-dev) and build "
              "ebb again" +
              at(entry()));
}

SummaryWriter::SummaryWriter(const std::string& folder) {
  detail::refuse_without_protobuf(folder, "TensorBoard's event files");
}
// Never called: no writer can be made.
SummaryWriter::~SummaryWriter() = default;
void SummaryWriter::add_scalar(const std::string&, double, std::int64_t, std::optional<double>) {}
void SummaryWriter::flush() {}

}  // namespace ebb
