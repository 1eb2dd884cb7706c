// Addresses where no memory is, touched by what the executing thread runs.
#pragma once
#include <string>

namespace ebb::emulated {

// Of the calling thread. Where stack() names a stack, a fault goes on there in land(address), which
// never returns; otherwise the process ends as it would have.
void catch_faults(void* (*stack)(const void* address), void (*land)(const void* address));

// Once more: test programs install handlers of their own, which come after this one.
void arm_faults();

// "address 0x... is not mapped", in words about device memory where it lies there.
std::string describe_fault(const void* address);

}  // namespace ebb::emulated
