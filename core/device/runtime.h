#pragma once
#include <cstring>
#include <memory>
#include <optional>
#include <string>

#include "ebb/allocator/caching_allocator.h"
#include "ebb/allocator/profile.h"
#include "ebb/core/base/reference.h"
#include "ebb/core/device/backend.h"
#include "ebb/core/device/device.h"

namespace ebb {

#ifndef EBB_POISON
#define EBB_POISON 0
#endif

namespace detail {
class Streams;
// Every byte of it: NaN in any floating type, an absurd index or count in any other.
inline constexpr unsigned char kPoison = 0xFF;
// What a kernel or a device has answered, in words.
std::string describe(const Status& status);
}  // namespace detail

// What stands behind a Device: its allocator, its streams, and the only way to its memory. The
// CPU's lives as long as the process, another as long as its handles and tensors.
//
// What goes wrong on the device is thrown as an Error.
class Runtime final : public detail::Counted {
 public:
  // What a device is made of.
  struct Parts {
    std::string name;
    memory::Profile profile;
    std::unique_ptr<memory::MemorySource> source;
    std::unique_ptr<Backend> backend;
    std::unique_ptr<memory::MemorySource> staging = {};  // see Runtime::staging(); may be null
  };
  // A device of its own.
  static Device make(Parts parts);
  static Device make_simulated(const memory::Profile& profile, std::size_t capacity_bytes);
  // One with the room that is left on `original`, of which a fraction is what it is there.
  static Device make_twin(const Runtime& original);
  // For tests: what Device::cpu() gives in this process. Throws Error after it has been asked for.
  static void replace_cpu(Parts parts);
  // CUDA device `number`, without its handle: made when first asked for, as long as the process
  // lives. Throws Error.
  static Runtime& cuda(int number);
  ~Runtime();

  const std::string& name() const noexcept { return name_; }
  const memory::Profile& profile() const noexcept { return profile_; }
  bool is_simulated() const noexcept { return simulated_; }
  // The memory is the host's, and whatever is asked for is done at once. There are no streams then.
  bool is_host() const noexcept { return host_; }
  memory::CachingAllocator& allocator() noexcept { return *allocator_; }
  // Page-locked memory of the host, which the device copies from by itself; null where that is no
  // different from any other.
  memory::CachingAllocator* staging() noexcept { return staging_.get(); }
  // No two of a process have the same.
  std::uint64_t serial() const noexcept { return serial_; }
  // The most that the device hands out, what is in use included; of a twin, what that was on its
  // original when it was made. Limits in fractions are of it.
  std::size_t capacity_bytes() const noexcept {
    return original_ ? original_->capacity_bytes : allocator_->capacity_bytes();
  }
  // The limit, or the capacity where that is less or there is none: thresholds in fractions are of
  // it. Of a twin without a limit of its own, likewise.
  std::size_t limit_bytes() const noexcept;
  // Whether what was asked of a simulated device stayed within its capacity; true on a real one.
  bool fits() const noexcept;
  // Whether memory is filled with NaNs when it is handed out and when its life ends, so that
  // whoever reads it too early or too late shows. Initially the build's EBB_POISON; results never
  // change.
  bool poisons() const noexcept { return poisons_ && !simulated_; }
  void set_poisons(bool poisons) noexcept { poisons_ = poisons; }

  bool has_streams() const noexcept { return !immediate_; }
  // The calling thread's stream; null where there are none.
  Stream* stream() { return immediate_ ? nullptr : stream_of_thread(); }
  // A stream for one owner, a session, who gives it back when he is done.
  Stream* lend_stream();
  void take_back(Stream* stream) noexcept;
  // What `stream` does from now on comes after what `other` has been asked for, or, if that is
  // Block::many_users(), all streams.
  void wait(Stream* stream, memory::User other) {
    if (other != nullptr && other != stream) wait_for_other(stream, other);
  }
  void synchronise(Stream* stream);

  // Traffic with the device's memory, in the order of a stream. Nothing happens on a simulated
  // device.
  void copy_in(Stream* stream, void* to, const void* from, std::size_t bytes);
  // From memory of staging(), which has to stay as it is until the stream has come past it.
  void copy_in_later(Stream* stream, void* to, const void* from, std::size_t bytes);
  void copy_out(Stream* stream, void* to, const void* from, std::size_t bytes);
  void copy(Stream* stream, void* to, const void* from, std::size_t bytes);
  void fill(Stream* stream, void* to, unsigned char value, std::size_t bytes);
  // Calls write(host memory of so many bytes, to be filled) and brings them to the device: that
  // memory is the device's own where it is the host's. Not called on a simulated device.
  template <class Write>
  void write(Stream* stream, void* to, std::size_t bytes, const Write& write) {
    if (simulated_) return;
    if (host_) {
      write(static_cast<std::byte*>(to));
      return;
    }
    const auto staged = std::make_unique_for_overwrite<std::byte[]>(bytes);
    write(staged.get());
    copy_in(stream, to, staged.get(), bytes);
  }

  // Runs kernels one after the other, until one refuses or fails.
  Launched run(Stream* stream, std::span<const Launch> launches) noexcept {
    return backend_->run(stream, launches);
  }
  // As Backend's.
  std::unique_ptr<Capture> capture(Stream* stream, std::span<const Launch> launches,
                                   const char*& problem) noexcept {
    return backend_->capture(stream, launches, problem);
  }
  Status replay(Stream* stream, Capture& capture) noexcept {
    return backend_->replay(stream, capture);
  }

 private:
  friend class Device;
  Runtime(Parts parts, bool simulated);
  Stream* stream_of_thread();
  void wait_for_other(Stream* stream, memory::User other);

  const std::string name_;
  const std::uint64_t serial_;
  const memory::Profile profile_;
  const bool simulated_;
  const bool host_;
  const bool immediate_;  // host or simulated
  bool poisons_ = EBB_POISON;
  // Of a twin: what its original had when the twin was made.
  struct Original {
    std::size_t capacity_bytes = 0, limit_bytes = 0;
  };
  std::optional<const Original> original_;
  const memory::MemorySource* source_;
  // The allocator goes first: its source may wait for the backend's work.
  const std::shared_ptr<Backend> backend_;
  std::shared_ptr<detail::Streams> streams_;
  std::unique_ptr<memory::CachingAllocator> allocator_;
  std::unique_ptr<memory::CachingAllocator> staging_;
};

// The values of some device memory as the host reads them: in place where they are the host's, else
// a copy, made here. Empty for a simulated device.
class HostView {
 public:
  HostView(Runtime& runtime, Stream* stream, const void* values, std::size_t bytes);

  const std::byte* data() const noexcept { return data_; }
  template <class T>
  const T* as() const noexcept {
    return reinterpret_cast<const T*>(data_);
  }

 private:
  std::unique_ptr<std::byte[]> copy_;
  const std::byte* data_ = nullptr;
};

}  // namespace ebb
