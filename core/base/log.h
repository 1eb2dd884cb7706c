#pragma once
#include <string>

namespace ebb::detail {

// What ebb says of its own doing, through spdlog's logger "ebb": the program's, if it has
// registered one, else one to the standard error. The environment's EBB_LOG sets the level of the
// latter (debug, info, warning, off); debug tells of each plan made, each arena and each close.
bool logs_debug();
void log_debug(const std::string& text);
void log_warning(const std::string& text);

}  // namespace ebb::detail
