// Recycled objects of one type.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace ebb::memory::detail {

/// Objects keep their addresses and are reused in the state in which they came back, without a call
/// of their constructors. Only reserve() allocates, so only it can throw.
template <class T>
class Slab {
 public:
  /// Makes sure that the next `count` calls of take() succeed.
  void reserve(std::size_t count) {
    if (spares_ < count) [[unlikely]]
      grow();
  }
  T* take() noexcept { return spare_[--spares_]; }
  void give(T* object) noexcept { spare_[spares_++] = object; }

 private:
  static constexpr std::size_t kChunk = 64;

  void grow() {
    chunks_.reserve(chunks_.size() + 1);
    spare_.resize(chunks_.capacity() * kChunk);
    auto chunk = std::make_unique<T[]>(kChunk);
    for (std::size_t i = kChunk; i-- > 0;) give(&chunk[i]);
    chunks_.push_back(std::move(chunk));
  }

  std::vector<std::unique_ptr<T[]>> chunks_;
  std::vector<T*> spare_;  // has room for every object; the first `spares_` are available
  std::size_t spares_ = 0;
};

}  // namespace ebb::memory::detail
