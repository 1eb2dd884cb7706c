#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ebb/core/random.h"
#include "ebb/core/safetensors.h"

namespace ebb::detail {

// What the safetensors files mean that Parameters::save and a session's write, so that either reads
// the other's. Tensors have the full names of parameters and slots. Metadata: "ebb.format" = "1"
// and "random.key", "random.counter" of the saving thread's generator; a file without any of it is
// one of values only, from elsewhere.
inline constexpr const char* kCheckpointFormat = "1";

// Slots have a '/' in their name, parameters have none.
inline bool is_slot(std::string_view name) noexcept {
  return name.find('/') != std::string_view::npos;
}

safetensors::Metadata checkpoint_metadata(const Generator& generator);

// A checkpoint opened for reading. Throws FileError, here and in the members, naming file and
// cause.
class Checkpoint {
 public:
  // Checks the header and the format's version.
  explicit Checkpoint(const std::string& file);

  const safetensors::File& file() const noexcept { return file_; }
  // Throws where there is no tensor of that name, or it has another shape or dtype.
  void require(const std::string& name, const Spec& spec) const;
  // The slots that belong to a set of parameters: those beside one of them, and those by themselves
  // ("adam/step"), which stand beside no parameter of the file.
  std::vector<safetensors::File::Entry> slots(
      const std::function<bool(const std::string&)>& has_parameter) const;
  // The random state, if the file has one.
  const std::optional<Generator>& generator() const noexcept { return generator_; }

 private:
  std::string name_;
  safetensors::File file_;
  std::optional<Generator> generator_;
};

}  // namespace ebb::detail
