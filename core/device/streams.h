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
  // Has `stream` wait for every other.
  Status wait_for_all(Stream* stream) noexcept;

 private:
  const std::shared_ptr<Backend> backend_;
  std::mutex mutex_;  // guards what follows
  std::vector<std::unique_ptr<Stream>> all_;
  std::vector<Stream*> idle_;
};

// The calling thread's stream of a device: lent when first asked for, given back when the thread
// ends.
Stream* stream_of_thread(const std::shared_ptr<Streams>& streams);

}  // namespace ebb::detail
