#include "ebb/core/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdlib>

namespace ebb::detail {

namespace {
spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> shared = [] {
    if (auto registered = spdlog::get("ebb")) return registered;
    auto made = std::make_shared<spdlog::logger>(
        "ebb", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
    const char* level = std::getenv("EBB_LOG");
    made->set_level(level ? spdlog::level::from_str(level) : spdlog::level::warn);
    return made;
  }();
  return *shared;
}
}  // namespace

bool logs_debug() { return logger().should_log(spdlog::level::debug); }
void log_debug(const std::string& text) { logger().debug(text); }
void log_warning(const std::string& text) { logger().warn(text); }

}  // namespace ebb::detail
