#pragma once
#include <memory>
#include <mutex>
#include <vector>

#include "ebb/core/device/backend.h"

namespace ebb::detail {

// The streams of a device: made when first needed, lent out, and used again. They are never
// destroyed before the device, so that memory may name the last one that used it.
class Streams {
 public:
  // A thread that ends while its device does may be the last to let go of both.
  explicit Streams(std::shared_ptr<Backend> backend) noexcept : backend_(std::move(backend)) {}

  Stream* lend();
  void take_back(Stream* stream) noexcept;
  // Has `stream` wait for every other. Where there are many, a stream without work waits for them,
  // one after the other, and `stream` for that one: whoever has had nothing to do since is waited
  // for once, not by each.
  Status wait_for_all(Stream* stream) noexcept;

 private:
  Stream* joint() noexcept;

  const std::shared_ptr<Backend> backend_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Stream>> all_;
  std::vector<Stream*> idle_;
  std::unique_ptr<Stream> joint_;  // that stream, once it is needed
};

// The calling thread's stream of a device: lent when first asked for, given back when the thread
// ends.
Stream* stream_of_thread(const std::shared_ptr<Streams>& streams);

}  // namespace ebb::detail
