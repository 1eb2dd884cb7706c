#pragma once
#include <string>

namespace ebb::detail {

// Log messages, through spdlog's logger "ebb". The program may register its own; otherwise one to
// the standard error is made, with the level from EBB_LOG (debug, info, warning, off). Level debug
// reports each plan, arena and close.
bool logs_debug();
void log_debug(const std::string& text);
void log_warning(const std::string& text);

}  // namespace ebb::detail
