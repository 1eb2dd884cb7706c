#pragma once
#include <memory>
#include <utility>

#include "ebb/core/device/device.h"

namespace ebb::memory {

// A page that this machine's browsers can open while a program runs. Ends with its last copy.
class Server {
 public:
  int port() const noexcept { return port_; }

 private:
  friend Server serve(int port, const Device& device);
  Server(int port, std::shared_ptr<void> running) : port_(port), running_(std::move(running)) {}

  int port_;
  std::shared_ptr<void> running_;
};

// Serves the page described at Recording::write_html() at http://127.0.0.1:port/, of whatever
// records the device at the time, and updates it in the browser. Threads of its own answer; they
// only read, and only this machine reaches it. Port 0 takes a free one. In the library ebb::serve,
// which a program links beside ebb::ebb. Throws Error if the port cannot be had.
//
//   memory::Server server = memory::serve(8000, device);
//   memory::Recording recording(device);
Server serve(int port, const Device& device);

}  // namespace ebb::memory
