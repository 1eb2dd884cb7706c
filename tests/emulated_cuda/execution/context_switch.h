// Switching stacks.
#pragma once

namespace ebb::emulated {

// Saves the running stack's position in *from and continues the stack at position `to`.
void switch_stack(void** from, void* to) noexcept;
// Prepares a new stack and returns its position. Its first step is entry(), which must never
// return. `top` must be aligned to 16.
void* prepare_stack(void* top, void (*entry)()) noexcept;

}  // namespace ebb::emulated
