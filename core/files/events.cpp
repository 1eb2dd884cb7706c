#include "ebb/core/files/events.h"

#include <spdlog/fmt/fmt.h>
#include <tensorboard.pb.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "ebb/core/base/error.h"

namespace ebb::detail {

namespace {

// CRC-32C (Castagnoli), rotated and shifted as in tensorflow/core/lib/hash/crc32c.h.
std::uint32_t masked_crc(std::string_view text) {
  std::uint32_t crc = ~std::uint32_t{0};
  for (const char byte : text) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc % 2 == 0 ? 0 : 0x82F63B78U);
  }
  crc = ~crc;
  return (crc >> 15 | crc << 17) + 0xA282EAD8U;
}

std::string little_endian(std::uint64_t number, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(number >> 8 * i);
  return text;
}

}  // namespace

std::string event_file(const std::string& folder, double seconds, const std::string& ending) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) refuse_file(folder + ": cannot be made: " + error.message());
  char host[256] = "";
  ::gethostname(host, sizeof host - 1);
  return fmt::format("{}/events.out.tfevents.{:010.0f}.{}.{}", folder, seconds, host, ending);
}

// Framed as a TFRecord: length, checksum of the length, event, checksum of the event.
std::string event_record(double seconds, std::int64_t step, const std::vector<Scalar>& scalars) {
  tensorboard::Event event;
  event.set_wall_time(seconds);
  scalars.empty() ? event.set_file_version("brain.Event:2") : event.set_step(step);
  for (const auto& [tag, value] : scalars) {
    auto& scalar = *event.mutable_summary()->add_value();
    scalar.set_tag(tag);
    scalar.set_simple_value(static_cast<float>(value));
  }
  const std::string text = event.SerializeAsString(), length = little_endian(text.size(), 8);
  return length + little_endian(masked_crc(length), 4) + text + little_endian(masked_crc(text), 4);
}

}  // namespace ebb::detail
