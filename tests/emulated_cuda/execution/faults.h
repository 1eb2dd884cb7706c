// Catches accesses to unmapped addresses on the executing thread.
#pragma once
#include <string>

namespace ebb::emulated {

// Registers the calling thread. When it touches an unmapped address and stack(address) is not null,
// it continues on that stack in land(address), which never returns. Otherwise the process ends as
// without this handler.
void catch_faults(void* (*stack)(const void* address), void (*land)(const void* address));

// Installs the handlers again: test programs install their own later.
void arm_faults();

// Says what is wrong with the address: a device address that did not reach the kernel in its
// arguments, one that is not mapped, or none of the device's.
std::string describe_fault(const void* address);

}  // namespace ebb::emulated
