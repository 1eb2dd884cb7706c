#pragma once

namespace ebb {

// Base of a class whose objects are neither copied nor moved.
class NoCopy {
 public:
  NoCopy() = default;
  NoCopy(const NoCopy&) = delete;
  NoCopy& operator=(const NoCopy&) = delete;
};

}  // namespace ebb
