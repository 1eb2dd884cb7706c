#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "ebb/core/base/call_site.h"
#include "ebb/core/base/no_copy.h"
#include "ebb/core/base/reference.h"
#include "ebb/core/device/device.h"
#include "ebb/core/device/runtime.h"

namespace ebb::detail {

// Tag of an allocation: an operator or other purpose, the user's line and the layer.
inline memory::Tag tag(const char* what, CallSite site) noexcept {
  return {what, site.file, site.line, site.layer_name()};
}

// The memory of one or more tensors (views share it): a block of the device's allocator, or memory
// borrowed from another library. Given back when the last handle goes.
class Storage final : public Counted {
 public:
  // Throws OutOfMemory, with nothing changed.
  Storage(Device device, const memory::Request& request)
      : device_(std::move(device)),
        block_(device_.runtime().allocator().allocate(request)),
        last_user_(block_->last_user()) {
    if (device_.runtime().poisons()) poison();
  }
  // Borrows memory on this device, which stays as long as `owner`. It is in no allocator's figures.
  Storage(Device device, std::byte* data, std::size_t bytes, bool is_read_only,
          std::shared_ptr<void> owner);
  // Memory of which ranks have shares, and which is whole only while it is used.
  class InShares {
   public:
    virtual ~InShares() = default;
    virtual std::size_t bytes() const noexcept = 0;  // of the whole
    // Where it is whole now. Throws what gathering does. A kernel's next layer lets the last one's
    // go; a pointer alone keeps what other pointers lead to.
    virtual const Ref<Storage>& whole(bool for_kernel) = 0;
    virtual Storage* whole_now() const noexcept = 0;         // null: nowhere
    virtual const Ref<Storage>& share() const noexcept = 0;  // this rank's
  };
  Storage(Device device, std::unique_ptr<InShares> in_shares)
      : device_(std::move(device)),
        block_(nullptr),
        in_shares_(std::move(in_shares)),
        last_user_(nullptr) {}
  ~Storage() {
    mend();
    if (in_shares_) return;
    if (is_borrowed_) {
      give_back();
      return;
    }
    if (device_.runtime().poisons()) poison();
    device_.runtime().allocator().free(block_, last_user_);
  }

  const Device& device() const noexcept { return device_; }
  // Whether one handle is all that refers to this memory. A lender always does, too.
  bool unique() const noexcept { return !is_borrowed_ && Counted::unique(); }
  bool is_read_only() const noexcept { return is_read_only_; }
  // Null for memory that is always there.
  InShares* in_shares() const noexcept { return in_shares_.get(); }
  // On the device; the host reads and writes through the functions below. Throws where in_shares().
  std::byte* data() const {
    return in_shares_ ? in_shares_->whole(false)->data() : static_cast<std::byte*>(block_->data());
  }
  std::size_t bytes() const noexcept {
    return in_shares_ ? in_shares_->bytes() : block_->requested_bytes();
  }
  memory::Category category() const noexcept {
    const Lock lock(*this);
    return in_shares_ ? memory::Category::parameter : block_->category();
  }
  void recategorise(memory::Category category) const noexcept {
    const Lock lock(*this);
    set_category(category);
  }

  // Makes later work of `stream` on this memory wait for all earlier work on it, on any stream.
  // Call used_on() once the work has been queued: another thread may have used the memory in
  // between, and `stream` has not waited for that.
  void use_on(Stream* stream) const {
    if (in_shares_) return in_shares_->whole(false)->use_on(stream);
    if (device_.runtime().has_streams()) wait_for_last_user(stream);
  }
  void used_on(Stream* stream) const noexcept {
    if (in_shares_) {
      if (const Storage* const whole = in_shares_->whole_now()) whole->used_on(stream);
      return;
    }
    if (device_.runtime().has_streams()) require_last_user(stream);
  }
  // Calls use_on() now and used_on() at the end of its life.
  class Use : NoCopy {
   public:
    Use(const Storage& storage, Stream* stream) : storage_(storage), stream_(stream) {
      storage_.use_on(stream_);
    }
    ~Use() { storage_.used_on(stream_); }

   private:
    const Storage& storage_;
    Stream* const stream_;
  };
  // Copies and fills `bytes` from `offset` on, in the order of the calling thread's stream.
  void copy_in(std::size_t offset, const void* from, std::size_t bytes) const;
  void copy_out(std::size_t offset, void* to, std::size_t bytes) const;
  void fill(unsigned char value) const;
  HostView view(std::size_t offset, std::size_t bytes) const;
  // Calls write(host memory) to produce the bytes; not called on a simulated device.
  template <class Write>
  void write(std::size_t offset, std::size_t bytes, const Write& write) const {
    in_order([&](Runtime& runtime, Stream* stream) {
      runtime.write(stream, data() + offset, bytes, write);
    });
  }

  // Marks the memory as torn: a kernel that was to update it failed after its first write. Nobody
  // may read it until all of it has been set. `by`: the operator, static text.
  void tear(const char* by) noexcept {
    tears_.fetch_add(1, std::memory_order_relaxed);
    if (!torn_by_.exchange(by, std::memory_order_relaxed))
      torn_.fetch_add(1, std::memory_order_relaxed);
  }
  void mend() noexcept {
    if (torn_by() && torn_by_.exchange(nullptr, std::memory_order_relaxed))
      torn_.fetch_sub(1, std::memory_order_relaxed);
  }
  const char* torn_by() const noexcept {
    return in_shares_ ? in_shares_->share()->torn_by() : torn_by_.load(std::memory_order_relaxed);
  }
  // Number of tears so far, of any memory. If unchanged, there is no need to check again.
  static std::uint64_t tears() noexcept { return tears_.load(std::memory_order_relaxed); }
  // Whether any memory is torn now.
  static bool any_torn() noexcept { return torn_.load(std::memory_order_relaxed) != 0; }

  // Counts updates in place, so that a backward pass notices when what it kept has changed.
  std::uint32_t version() const noexcept {
    return in_shares_ ? in_shares_->share()->version() : version_.load(std::memory_order_relaxed);
  }
  void bump_version() noexcept { version_.fetch_add(1, std::memory_order_relaxed); }

  // State is memory that Parameters hold from step to step. Updates of it, through whatever view,
  // are not part of a history.
  void make_state(unsigned layer) noexcept {
    is_state_ = true;
    layer_ = layer;
  }
  bool is_state() const noexcept { return is_state_; }
  // Layer that state was declared in; 0 for other memory.
  unsigned layer() const noexcept { return layer_; }

  // An update in place of this memory is on the tape. Reading it through a handle without a history
  // that is not detached would drop a gradient.
  void make_history() noexcept { has_history_ = true; }
  bool has_history() const noexcept { return has_history_; }

  // Forgets the past of memory that nobody refers to any more and that is written anew.
  void begin_anew() noexcept {
    is_state_ = has_history_ = false;
    layer_ = 0;
    mend();
  }

  // Serial number, to tell memory made before a moment on a thread from memory made after it.
  // Serials of one thread grow, and no other thread's lie between them.
  std::uint64_t serial() const noexcept { return serial_; }
  static std::uint64_t next_serial() noexcept;

  // Between keep() and unkeep() a gradient keeps this memory: a temporary counts as an activation.
  // Tapes of several threads may keep the same memory and may be first or last.
  void keep() noexcept;
  void unkeep() noexcept;
  // unkeep() for the last reader: the memory stays an activation.
  void leave() noexcept {
    const Lock lock(*this);
    --keepers_;
  }

 private:
  // Guards keepers and category together, so that each count matches the category set for it.
  class Lock : NoCopy {
   public:
    explicit Lock(const Storage& storage) noexcept : locked_(storage.locked_) {
      while (locked_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    }
    ~Lock() { locked_.clear(std::memory_order_release); }

   private:
    std::atomic_flag& locked_;
  };
  // Calls work(runtime, the calling thread's stream) after earlier work on this memory.
  template <class Work>
  auto in_order(const Work& work) const {
    Runtime& runtime = device_.runtime();
    Stream* const stream = runtime.stream();
    const Use use(*this, stream);
    return work(runtime, stream);
  }
  void set_category(memory::Category category) const noexcept {
    if (!in_shares_) device_.runtime().allocator().recategorise(block_, category);
  }

  void wait_for_last_user(Stream* stream) const;
  void require_last_user(Stream* stream) const noexcept;
  void poison() const noexcept;
  void give_back() const noexcept;

  inline static std::atomic<std::uint64_t> tears_{0};
  inline static std::atomic<std::uint32_t> torn_{0};

  const Device device_;
  memory::Block* const block_;
  const std::unique_ptr<InShares> in_shares_;
  const std::uint64_t serial_ = next_serial();
  std::atomic<std::uint32_t> version_{0};
  bool is_state_ = false;
  bool has_history_ = false;
  const bool is_borrowed_ = false, is_read_only_ = false;
  unsigned layer_ = 0;
  std::atomic<const char*> torn_by_{nullptr};
  mutable std::atomic_flag locked_;  // guards category, last_user_, keepers_
  mutable memory::User last_user_;   // one stream, or many
  std::uint32_t keepers_ = 0;
};

}  // namespace ebb::detail
