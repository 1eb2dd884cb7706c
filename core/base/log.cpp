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
    const char* const text = std::getenv("EBB_LOG");
    const std::string name = text && *text ? text : "warning";
    const spdlog::level::level_enum level = spdlog::level::from_str(name);  // unknown: off
    const bool is_known = level != spdlog::level::off || name == "off";
    made->set_level(is_known ? level : spdlog::level::warn);
    if (!is_known)
      made->warn("EBB_LOG is '" + name +
                 "'; there is: trace, debug, info, warning, error, critical, off");
    return made;
  }();
  return *shared;
}
}  // namespace

bool logs_debug() { return logger().should_log(spdlog::level::debug); }
void log_debug(const std::string& text) { logger().debug(text); }
void log_warning(const std::string& text) { logger().warn(text); }

}  // namespace ebb::detail
