#pragma once

namespace ebb::tests {

// Makes operator new throw std::bad_alloc once, in the thread that asked for it.
struct HeapFault {
  static void arm() noexcept;
  static bool disarm() noexcept;  // whether it was still armed
};

}  // namespace ebb::tests
