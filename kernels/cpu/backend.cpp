#include "ebb/core/device/backend.h"

#include <cstring>

#include "ebb/core/kernels/workers.h"

namespace ebb {
namespace {

// The host: everything happens at once, on the calling thread and the workers.
class CpuBackend final : public Backend {
 public:
  bool is_host() const noexcept override { return true; }
  std::unique_ptr<Stream> make_stream() override { return nullptr; }
  Status wait(Stream*, Stream*) noexcept override { return {}; }
  Status synchronise(Stream*) noexcept override { return {}; }

  Status copy_in(Stream* s, void* to, const void* from, std::size_t bytes) noexcept override {
    return copy(s, to, from, bytes);
  }
  Status copy_out(Stream* s, void* to, const void* from, std::size_t bytes) noexcept override {
    return copy(s, to, from, bytes);
  }
  Status copy(Stream*, void* to, const void* from, std::size_t bytes) noexcept override {
    if (bytes) std::memcpy(to, from, bytes);
    return {};
  }
  Status fill(Stream*, void* to, unsigned char value, std::size_t bytes) noexcept override {
    if (bytes) std::memset(to, value, bytes);
    return {};
  }

  Launched run(Stream*, std::span<const Launch> launches) noexcept override {
    flush_denormals_on_this_thread();
    for (std::size_t i = 0; i < launches.size(); ++i)
      if (const Status status = launches[i].run(launches[i].context); !status.ok())
        return {status, i};
    return {{}, launches.size()};
  }
};

}  // namespace

std::unique_ptr<Backend> detail::make_cpu_backend() { return std::make_unique<CpuBackend>(); }

}  // namespace ebb
