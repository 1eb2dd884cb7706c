// Recycled objects of one type.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace ebb::memory::detail {

/// Objects keep their addresses and are handed out again as they were given back, without calling
/// their constructors. Only reserve() allocates, so only it can throw.
template <class T>
class Slab {
 public:
  /// Makes sure that the next `count` takes succeed.
  void reserve(std::size_t count) {
    if (spare_.size() < count) [[unlikely]]
      grow();
  }
  T* take() noexcept {
    T* object = spare_.back();
    spare_.pop_back();
    return object;
  }
  void give(T* object) noexcept { spare_.push_back(object); }  // within capacity: see grow()

 private:
  static constexpr std::size_t kChunk = 64;

  void grow() {
    chunks_.reserve(chunks_.size() + 1);
    if (chunks_.capacity() * kChunk > spare_.capacity())
      spare_.reserve(chunks_.capacity() * kChunk);
    auto chunk = std::make_unique<T[]>(kChunk);
    for (std::size_t i = kChunk; i-- > 0;) spare_.push_back(&chunk[i]);
    chunks_.push_back(std::move(chunk));
  }

  std::vector<std::unique_ptr<T[]>> chunks_;
  std::vector<T*> spare_;  // has room for every object there is
};

}  // namespace ebb::memory::detail
