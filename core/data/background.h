#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

namespace ebb::detail {

// A worker thread that does pieces of work in the order in which they are asked for, and sleeps
// when there is none. Used by one thread at a time.
class Background {
 public:
  // work(number), counted from 0, does one piece; it must not throw. Throws std::system_error if no
  // thread can be started.
  explicit Background(std::function<void(std::uint64_t number)> work);
  // Waits for the piece in progress and drops pieces that have not begun.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // Asks for the next piece.
  void ask();
  // Waits for piece `number` and returns true. Returns false if it will never be done: this process
  // was forked, and the thread is the parent's.
  bool wait(std::uint64_t number) const;

 private:
  struct Shared;
  bool is_forked() const noexcept;

  const int process_;
  std::unique_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace ebb::detail
