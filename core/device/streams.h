#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "ebb/core/device/backend.h"

namespace ebb::detail {

// Streams of a device: made when first needed, lent out, and reused. None is destroyed before the
// device, so that memory may name its last user; of those that are idle, all but the latest few
// rest.
class Streams {
 public:
  // Shares the backend: a thread that ends as its device does may be the last owner of both.
  explicit Streams(std::shared_ptr<Backend> backend) noexcept : backend_(std::move(backend)) {}

  Stream* lend();
  void take_back(Stream* stream) noexcept;
  // Makes `stream` wait for every other one. With more than two, a joint stream without work of its
  // own waits for each of them, and `stream` for the joint one. A stream without new work is then
  // waited for once, not once by every caller.
  Status wait_for_all(Stream* stream) noexcept;

 private:
  Stream* joint() noexcept;

  const std::shared_ptr<Backend> backend_;
  std::mutex mutex_;  // guards the members below
  std::vector<std::unique_ptr<Stream>> all_;
  std::vector<Stream*> idle_;
  std::unique_ptr<Stream> joint_;  // the joint stream, once it is needed
};

// Stream of the calling thread on a device: lent at the first call, given back when the thread
// ends.
Stream* stream_of_thread(const std::shared_ptr<Streams>& streams);

}  // namespace ebb::detail
