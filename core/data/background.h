#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>

namespace ebb::detail {

// A thread that does pieces of work beside the one that asks for them, in the order in which they
// are asked for. It sleeps while there is nothing to do. Used by one thread at a time.
class Background {
 public:
  // work(number), from 0 on, does a piece; it must not throw. Throws std::system_error where there
  // is no thread to be had.
  explicit Background(std::function<void(std::uint64_t number)> work);
  // Returns when the piece that is being done is done. Those that wait are not done any more.
  ~Background();
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;

  // For the next piece.
  void ask();
  // Returns true once the piece of that number is done. False: it never will be, since this process
  // was forked and the thread is its parent's.
  bool wait(std::uint64_t number) const;

 private:
  struct Shared;
  bool is_forked() const noexcept;

  const int process_;
  std::unique_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace ebb::detail
