// TensorBoard's event files.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ebb::detail {

// A name for an event file in `folder`, which is made if it is missing. `seconds` since 1970; they
// order the files of a folder. Throws FileError, and Error in a build without protobuf.
std::string event_file(const std::string& folder, double seconds, const std::string& ending);

struct Scalar {
  std::string tag;
  double value = 0;
};
// One record: an event at `seconds` since 1970. Without scalars it is the record that every event
// file begins with.
std::string event_record(double seconds, std::int64_t step = 0,
                         const std::vector<Scalar>& scalars = {});

}  // namespace ebb::detail
