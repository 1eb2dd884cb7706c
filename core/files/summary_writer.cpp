#include "ebb/core/files/summary_writer.h"

#include <tensorboard.pb.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <exception>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <system_error>

#include "ebb/core/base/error.h"
#include "ebb/core/base/formatted.h"
#include "ebb/core/base/log.h"
#include "ebb/core/files/input_file.h"
#include "ebb/core/files/output_file.h"

namespace ebb {

namespace {

using detail::little_endian;
using tensorboard::Event;

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// CRC-32C (Castagnoli), rotated and shifted as in tensorflow/core/lib/hash/crc32c.h.
std::uint32_t masked_crc(const std::string& text) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : text) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc % 2 == 0 ? 0 : 0x82F63B78U);
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

// A TFRecord: the event between its length and its checksum.
std::string record_of(const Event& event) {
  const std::string text = event.SerializeAsString(), length = little_endian(text.size(), 8);
  return length + little_endian(masked_crc(length), 4) + text + little_endian(masked_crc(text), 4);
}

}  // namespace

SummaryWriter::SummaryWriter(const std::string& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) detail::refuse_file(folder + ": cannot be made: " + error.message());
  static std::atomic<unsigned> count{0};
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  Event event;
  event.set_wall_time(seconds_since_1970());
  event.set_file_version("brain.Event:2");
  path_ = folder + "/events.out.tfevents." + detail::formatted("%010.0f", event.wall_time()) + '.' +
          host + '.' + std::to_string(::getpid()) + '.' + std::to_string(count++);
  pending_ = record_of(event);
  flush();
}

SummaryWriter::~SummaryWriter() {
  try {
    flush();
  } catch (const std::exception& problem) {
    detail::log_warning(problem.what());
  }
}

void SummaryWriter::add_scalar(const std::string& tag, double value, std::int64_t step,
                               std::optional<double> walltime) {
  try {
    static_cast<void>(nlohmann::json(tag).dump());
  } catch (const nlohmann::json::exception&) {  // TensorBoard would read nothing of the file
    detail::refuse("add_scalar", "the tag " + detail::in_quotes(tag) + " is not UTF-8");
  }
  Event event;
  event.set_wall_time(walltime ? *walltime : seconds_since_1970());
  event.set_step(step);
  auto& scalar = *event.mutable_summary()->add_value();
  scalar.set_tag(tag);
  scalar.set_simple_value(static_cast<float>(value));
  pending_ += record_of(event);
  constexpr std::size_t kMostPending = 1 << 20;
  if (pending_.size() > kMostPending ||
      std::chrono::steady_clock::now() - flushed_ >= std::chrono::seconds(2))
    flush();
}

void SummaryWriter::flush() {
  flushed_ = std::chrono::steady_clock::now();
  std::error_code ignored;
  const std::uintmax_t before = std::filesystem::file_size(path_, ignored);
  std::ofstream file(path_, std::ios::binary | std::ios::app);
  file << pending_;
  file.close();
  if (!file) {
    const std::string cause = std::generic_category().message(errno);
    std::filesystem::resize_file(path_, before, ignored);  // readers stop at half a record
    detail::refuse_file(path_ + ": cannot be written: " + cause);
  }
  pending_.clear();
}

}  // namespace ebb
