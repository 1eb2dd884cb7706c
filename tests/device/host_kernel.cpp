#include <cstring>
#include <map>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/device/runtime.h"
#include "ebb/tests/device/host_kernel.h"

namespace ebb::tests {
namespace {

// Copies of device memory on the host. There is one per address, so that an input that is updated
// in place stays the same as its output.
class Copies {
 public:
  explicit Copies(Stream* stream) : stream_(stream) {}

  Buffer of(const Buffer& buffer) {
    const std::size_t bytes = buffer.spec.shape.is_open() ? 0 : buffer.spec.bytes();
    if (!buffer.data) return buffer;
    std::vector<std::byte>& copy = copies_[buffer.data];
    if (copy.size() < bytes) {
      copy.resize(bytes);
      runtime().copy_out(stream_, copy.data(), buffer.data, bytes);
    }
    return {copy.data(), buffer.spec};
  }
  void bring_back() {
    for (const auto& [address, copy] : copies_)
      runtime().copy_in(stream_, address, copy.data(), copy.size());
  }

 private:
  static Runtime& runtime() { return Device::cpu().runtime(); }
  Stream* const stream_;
  std::map<void*, std::vector<std::byte>> copies_;
};

}  // namespace

Status run_on_copies(Kernel kernel, const KernelContext& context) noexcept {
  try {
    Copies copies(context.stream);
    std::vector<Buffer> inputs, outputs;
    for (const Buffer& input : context.inputs) inputs.push_back(copies.of(input));
    for (const Buffer& output : context.outputs) outputs.push_back(copies.of(output));
    std::vector<std::byte> workspace(std::size_t{1} << 20);
    KernelContext here = context;
    here.inputs = inputs;
    here.outputs = outputs;
    if (here.workspace) here.workspace = workspace.data();
    const Status status = kernel(here);
    if (!status.refused) copies.bring_back();
    return status;
  } catch (const std::exception&) {
    return Status::fail("the test's kernel could not be run on copies");
  }
}

}  // namespace ebb::tests
