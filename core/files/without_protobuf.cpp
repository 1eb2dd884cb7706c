#include "ebb/core/files/without_protobuf.h"

#include "ebb/core/base/error.h"

namespace ebb::detail {

void refuse_without_protobuf(const std::string& path, const char* what) {
  throw Error("[protobuf] " + path + ": this ebb was built without protobuf, by which it writes " +
              what +
              "; install it (Debian: apt-get install protobuf-compiler libprotobuf-dev) and build "
              "ebb again" +
              at(entry()));
}

}  // namespace ebb::detail
