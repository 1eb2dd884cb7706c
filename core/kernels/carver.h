#pragma once
#include <cstddef>
#include <cstdint>

namespace ebb {

// Parts of a workspace begin at multiples of a cache line.
constexpr std::size_t aligned_bytes(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

// Cuts memory into consecutive arrays; with a null base it only counts. For parts with stricter
// alignment than workspaces it counts the room to align them.
class Carver {
 public:
  explicit Carver(void* base) noexcept : base_(static_cast<std::byte*>(base)) {}
  template <class T>
  T* take(std::int64_t elements) noexcept {
    return reinterpret_cast<T*>(take_bytes(static_cast<std::size_t>(elements) * sizeof(T)));
  }
  // alignment: a power of two, 64 or more.
  std::byte* take_bytes(std::size_t bytes, std::size_t alignment = 64) noexcept {
    if (bytes == 0) return at(bytes_);
    const std::size_t room = aligned_bytes(bytes) + alignment - 64;
    std::byte* begin = at(bytes_);
    const std::size_t past = reinterpret_cast<std::uintptr_t>(begin) & (alignment - 1);
    if (begin != nullptr && past != 0) begin += alignment - past;
    bytes_ += room;
    return begin;
  }
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  std::byte* at(std::size_t bytes) const noexcept {
    return base_ == nullptr ? nullptr : base_ + bytes;
  }

  std::byte* base_;
  std::size_t bytes_ = 0;
};

}  // namespace ebb
