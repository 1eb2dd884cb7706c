#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ebb {

// Constants of one application of an operator: a trivially copyable struct of the operator's
// family, held in place. Compared byte by byte, so the bytes are zeroed before the struct is
// written; a struct should have no padding, which a copy could leave undefined.
class Attributes {
 public:
  static constexpr std::size_t kCapacity = 96;

  Attributes() = default;
  template <class T>
  requires(!std::is_same_v<T, Attributes>) Attributes(
      const T& value) {  // NOLINT: implicit by design, `apply(op, inputs, MatmulAttributes{..})`
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kCapacity);
    std::memcpy(bytes_, &value, sizeof(T));
  }

  template <class T>
  const T& get() const noexcept {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= kCapacity);
    return *reinterpret_cast<const T*>(bytes_);
  }

  // All bytes, for a hash.
  std::array<std::uint64_t, kCapacity / 8> words() const noexcept {
    std::array<std::uint64_t, kCapacity / 8> words;
    std::memcpy(words.data(), bytes_, kCapacity);
    return words;
  }

  friend bool operator==(const Attributes& a, const Attributes& b) noexcept {
    return std::memcmp(a.bytes_, b.bytes_, kCapacity) == 0;
  }

 private:
  alignas(8) std::byte bytes_[kCapacity] = {};
};

}  // namespace ebb
