#pragma once
#include <atomic>
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
class Simulation;
// Fills every byte of poisoned memory: NaN in any floating type, an absurd index or count in any
// other.
inline constexpr unsigned char kPoison = 0xFF;
// Words for the status of a kernel or a device.
std::string describe(const Status& status);
}  // namespace detail

// State behind a Device: its allocator, its streams, and the only access to its memory. The CPU's
// lives as long as the process, any other as long as its handles and tensors.
//
// Failures on the device are thrown as Error.
class Runtime final : public detail::Counted {
 public:
  // Parts of a device.
  struct Parts {
    std::string name;
    memory::Profile profile;
    std::unique_ptr<memory::MemorySource> source;
    std::unique_ptr<Backend> backend;
    std::unique_ptr<memory::MemorySource> staging = {};  // see Runtime::staging(); may be null
  };
  // Makes a new device.
  static Device make(Parts parts);
  static Device make_simulated(const memory::Profile& profile, std::size_t capacity_bytes);
  // Makes a simulated device with the room left on `original`. Fractions of limits refer to the
  // original's figures.
  static Device make_twin(const Runtime& original);
  // For tests: replaces the device that Device::cpu() returns. Throws Error once Device::cpu() has
  // been called.
  static void replace_cpu(Parts parts);
  // CUDA device `number`, without a handle: made at the first call, and kept as long as the process
  // lives. Throws Error.
  static Runtime& cuda(int number);
  ~Runtime();

  const std::string& name() const noexcept { return name_; }
  const memory::Profile& profile() const noexcept { return profile_; }
  bool is_simulated() const noexcept { return simulated_; }
  // Whether the memory is the host's and work is done at once. There are no streams then.
  bool is_host() const noexcept { return host_; }
  memory::CachingAllocator& allocator() noexcept { return *allocator_; }
  // Page-locked host memory, which the device copies from on its own; null if the device gains
  // nothing from it.
  memory::CachingAllocator* staging() noexcept { return staging_.get(); }
  // Bytes of other libraries' memory that tensors here borrow. No allocator counts them.
  std::atomic<std::size_t>& borrowed_bytes() noexcept { return borrowed_bytes_; }
  // Unique in the process.
  std::uint64_t serial() const noexcept { return serial_; }
  // Most bytes that the device hands out, including the bytes in use; for a twin, the original's
  // figure when the twin was made. Fractions of limits refer to it.
  std::size_t capacity_bytes() const noexcept {
    return original_ ? original_->capacity_bytes : allocator_->capacity_bytes();
  }
  // Limit, or the capacity if that is less or there is no limit; for a twin without a limit of its
  // own, the original's figure. Fractions of thresholds refer to it.
  std::size_t limit_bytes() const noexcept;
  // Whether requests to a simulated device stayed within its capacity; true on a real one.
  bool fits() const noexcept;
  // What a prediction gives the program that it runs here in place of values; null without one.
  // Always null on a real device.
  std::shared_ptr<detail::Simulation> simulation() const noexcept;
  // Whether tensors here have values to read; on a simulated device a prediction may give some.
  bool has_values() const noexcept;
  // Returns the previous one.
  std::shared_ptr<detail::Simulation> set_simulation(
      std::shared_ptr<detail::Simulation> simulation) noexcept;
  // Whether memory is filled with NaNs when it is handed out and when its life ends, so that reads
  // too early or too late show. Initially the build's EBB_POISON. Results never change.
  bool poisons() const noexcept { return poisons_ && !simulated_; }
  void set_poisons(bool poisons) noexcept { poisons_ = poisons; }

  bool has_streams() const noexcept { return !immediate_; }
  // The calling thread's stream; null where there are none.
  Stream* stream() { return immediate_ ? nullptr : stream_of_thread(); }
  // Lends a stream to one owner, such as a session, until take_back().
  Stream* lend_stream();
  void take_back(Stream* stream) noexcept;
  // Work put into `stream` from now on runs after all work already put into `other`, or into all
  // streams if that is Block::many_users().
  void wait(Stream* stream, memory::User other) {
    if (other != nullptr && other != stream) wait_for_other(stream, other);
  }
  void synchronise(Stream* stream);

  // Copies and fills of device memory, in the order of a stream. They do nothing on a simulated
  // device.
  void copy_in(Stream* stream, void* to, const void* from, std::size_t bytes);
  // See Backend.
  void copy_in_later(Stream* stream, void* to, const void* from, std::size_t bytes);
  void wait_for_copies(Stream* stream);
  void copy_out(Stream* stream, void* to, const void* from, std::size_t bytes);
  void copy(Stream* stream, void* to, const void* from, std::size_t bytes);
  void fill(Stream* stream, void* to, unsigned char value, std::size_t bytes);
  // Calls write(host memory of `bytes` bytes), then copies what it wrote to the device. A host
  // device's own memory is written directly. Does nothing on a simulated device.
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

  // Runs launches in order until one refuses or fails.
  Launched run(Stream* stream, std::span<const Launch> launches) noexcept {
    return backend_->run(stream, launches);
  }
  // See Backend.
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
  std::atomic<std::size_t> borrowed_bytes_{0};
  // For a twin: the original's figures when the twin was made.
  struct Original {
    std::size_t capacity_bytes = 0, limit_bytes = 0;
  };
  std::optional<const Original> original_;
  std::shared_ptr<detail::Simulation> simulation_;  // guarded by a mutex in the source file
  const memory::MemorySource* source_;
  // The allocator is destroyed first, as its source may wait for the backend's work.
  const std::shared_ptr<Backend> backend_;
  std::shared_ptr<detail::Streams> streams_;
  std::unique_ptr<memory::CachingAllocator> allocator_;
  std::unique_ptr<memory::CachingAllocator> staging_;
};

// Host view of values in device memory: in place if the memory is the host's, otherwise a copy made
// here. Empty on a simulated device.
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
