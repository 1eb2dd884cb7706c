// From one stack to another.
#pragma once

namespace ebb::emulated {

// Keeps where this stack stands in *from and goes on where `to` stands.
void switch_stack(void** from, void* to) noexcept;
// Where a stack stands whose first step is entry(), which never returns. `top` is aligned to 16.
void* prepare_stack(void* top, void (*entry)()) noexcept;

}  // namespace ebb::emulated
