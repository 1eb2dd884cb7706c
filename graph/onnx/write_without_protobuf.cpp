// Replaces write.cpp in a build without protobuf.
#include "ebb/core/base/call_site.h"
#include "ebb/core/memory/without_protobuf.h"
#include "ebb/graph/session.h"

namespace ebb {

void Session::write_onnx(const std::string& file, const std::vector<NamedTensor>&, CallSite site) {
  const detail::CallSiteScope scope(site);
  detail::refuse_without_protobuf(file, "ONNX");
}

}  // namespace ebb
