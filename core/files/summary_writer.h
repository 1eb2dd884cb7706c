#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

namespace ebb {

// Writes scalars of a training loop for TensorBoard: `tensorboard --logdir runs` draws each tag as
// a curve over steps, beside those of other folders in `runs`.
//
//   SummaryWriter writer("runs/first");
//   for (...) {
//     writer.add_scalar("loss/training", loss.item<float>(), ++step);
//     writer.add_scalar("memory/peak", double(memory::stats(device).allocated.peak), step);
//   }
//
// TensorBoard groups tags by what stands before the first slash. Its values are 32-bit floats:
// allocated bytes, multiples of 512, are exact up to 8 GiB. Each writer makes a file of its own.
// Whole records are written, every two seconds or megabyte, and not synced: a killed process loses
// only the last ones. One thread at a time.
class SummaryWriter {
 public:
  // Makes the folder if it is missing. Throws FileError, and Error in a build without protobuf.
  explicit SummaryWriter(const std::string& folder);
  ~SummaryWriter();  // flushes; logs a failure
  SummaryWriter(const SummaryWriter&) = delete;
  SummaryWriter& operator=(const SummaryWriter&) = delete;

  // `walltime` in seconds since 1970; default: now. Throws Error for a tag that is not UTF-8,
  // FileError if it writes and cannot; what was added is then written the next time.
  void add_scalar(const std::string& tag, double value, std::int64_t step,
                  std::optional<double> walltime = {});
  // Writes what was added. Throws FileError.
  void flush();

 private:
  std::string path_, pending_;  // pending_: whole records
  std::chrono::steady_clock::time_point flushed_;
};

}  // namespace ebb
