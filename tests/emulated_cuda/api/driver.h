#pragma once

namespace ebb::emulated {

// A function of the driver that the emulation has; null for others.
void* driver_function(const char* name);

}  // namespace ebb::emulated
