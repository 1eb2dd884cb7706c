#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace ebb {

// Writes scalars of a training loop for TensorBoard: `tensorboard --logdir runs` draws each tag as
// a curve over steps, beside those of other folders in `runs`.
//
//   SummaryWriter writer("runs/first");
//   for (...) {
//     writer.add_scalar("loss/training", loss.item<double>(), ++step);
//     writer.add_scalar("memory/peak", double(memory::stats(device).allocated.peak), step);
//   }
//
// TensorBoard groups tags by what stands before the first slash. Its values are 32-bit floats:
// bytes in allocated sizes, multiples of 512, are exact up to 8 GiB. Each writer makes a file of
// its own. What was added reaches it every two seconds, in whole records, and is not synced: a
// process that is killed loses at most the last ones. One thread at a time.
class SummaryWriter {
 public:
  // Makes the folder if it is missing. Throws FileError, and Error in a build without protobuf.
  explicit SummaryWriter(const std::string& folder);
  ~SummaryWriter();  // writes the rest; a failure is logged
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;

  // Throws FileError where that makes it write; what was not written is kept for the next time.
  void add_scalar(const std::string& tag, double value, std::int64_t step);
  // Writes everything added so far. Throws FileError.
  void flush();

 private:
  using Clock = std::chrono::system_clock;

  const Clock::time_point begin_ = Clock::now();
  const std::string path_;
  std::string pending_;         // records
  std::uintmax_t written_ = 0;  // bytes
  Clock::time_point flushed_ = begin_;
};

}  // namespace ebb
