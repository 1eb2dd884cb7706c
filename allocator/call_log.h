// Requests of a program, in order, so that they can be made again under another limit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

#include "ebb/allocator/block.h"
#include "ebb/allocator/mutex.h"
#include "ebb/allocator/profile.h"
#include "ebb/allocator/statistics.h"

namespace ebb::memory {

/// Every call that an allocator and its pools get, as long as it is set on them. Its questions make
/// the calls again of an allocator without memory; ask them once nobody adds calls any more. It
/// takes 32 bytes of the host for each call.
class CallLog {
 public:
  explicit CallLog(Profile profile) : profile_(std::move(profile)) {}

  /// Request that reached the most bytes allocated at once.
  const Request& peak_request() const noexcept { return peak_request_; }
  /// Tags that held most bytes then, largest first.
  std::vector<Holder> peak_holders(std::size_t most) const;
  /// Smallest capacity, in whole pages, that serves all requests, while one page less does not.
  /// Watches are not called and sizes stay as they were requested, so it is the bound of a program
  /// that does not ask how much memory there is.
  std::size_t least_limit_bytes() const;

  enum class Kind : std::uint8_t {
    allocate,  // this and the next three: of the allocator, or of a pool
    free,
    set_limit,
    preallocate,
    release_cached,
    make_pool,
    grow,
    rest,
    wake,
    suspend,
    resume,
    close,
    destroy_pool,
  };

  // For the allocator and its pools; from any thread.
  void add(Kind kind, const void* pool = nullptr, const void* block = nullptr,
           std::size_t bytes = 0) noexcept;
  /// Adds a request that was served; `allocated` bytes are now in use on the device.
  void add(Kind kind, const void* pool, const Block* block, const Request& request,
           std::size_t allocated, const Composition* composition = nullptr,
           bool may_grow = false) noexcept;

 private:
  class Replay;
  struct Call {
    const void* pool;
    const void* block;
    std::size_t bytes;
    std::uint32_t request;  // index of an allocation's request
    Kind kind;
    bool may_grow;
  };
  struct Asked {
    Request request;
    Composition composition;
  };
  bool is_served_by(std::size_t capacity_bytes) const;
  std::uint32_t known(const Request& request, const Composition* composition);

  const Profile profile_;
  Mutex mutex_;
  std::vector<Call> calls_;
  std::vector<Asked> asked_;  // each tag of the cache once, and each request of a pool
  std::map<std::tuple<const char*, const char*, unsigned, const char*>, std::uint32_t> tags_;
  bool is_torn_ = false;  // the host had no memory for a call
  std::size_t peak_bytes_ = 0;
  std::size_t peak_calls_ = 0;  // calls up to the one that reached it
  Request peak_request_;
};

}  // namespace ebb::memory
