// Replaces summary_writer.cpp in a build without protobuf.
#include "ebb/core/files/summary_writer.h"
#include "ebb/core/files/without_protobuf.h"

namespace ebb {

SummaryWriter::SummaryWriter(const std::string& folder) {
  detail::refuse_without_protobuf(folder, "TensorBoard's event files");
}
// Never called: no writer can be made.
SummaryWriter::~SummaryWriter() = default;
void SummaryWriter::add_scalar(const std::string&, double, std::int64_t, std::optional<double>) {}
void SummaryWriter::flush() {}

}  // namespace ebb
