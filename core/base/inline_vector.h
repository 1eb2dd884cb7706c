#pragma once
#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <ranges>
#include <type_traits>
#include <utility>

namespace ebb {

// A vector whose first N elements live in the object. Most operators have few inputs and outputs,
// and an eager one must not pay for the heap.
template <class T, std::size_t N>
class InlineVector {
 public:
  using value_type = T;

  InlineVector() = default;
  // Constructors delegate to the default one, so that the destructor runs if an element throws.
  explicit InlineVector(std::size_t count) : InlineVector() { resize(count); }
  InlineVector(std::initializer_list<T> values) : InlineVector() {
    reserve(values.size());
    for (const T& value : values) push_back(value);
  }
  // Copies a contiguous range of T: std::vector, std::span, std::array.
  template <std::ranges::contiguous_range Range>
  requires std::same_as<std::ranges::range_value_t<Range>, T> &&
      (!std::same_as<std::remove_cvref_t<Range>, InlineVector>)
          InlineVector(const Range& values)  // NOLINT: implicit, where several tensors are taken
      : InlineVector(std::ranges::begin(values), std::ranges::end(values)) {}
  template <std::input_iterator Iterator>
  InlineVector(Iterator first, Iterator last) : InlineVector() {
    for (; first != last; ++first) push_back(*first);
  }
  InlineVector(const InlineVector& other) : InlineVector(other.begin(), other.end()) {}
  InlineVector(InlineVector&& other) noexcept { take(other); }
  InlineVector& operator=(const InlineVector& other) {
    if (this != &other) *this = InlineVector(other);
    return *this;
  }
  InlineVector& operator=(InlineVector&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~InlineVector() { release(); }

  void reserve(std::size_t capacity) {
    if (capacity <= capacity_) return;
    T* grown = std::allocator<T>().allocate(capacity);
    std::uninitialized_move(begin(), end(), grown);
    std::destroy(begin(), end());
    free_heap();
    data_ = grown;
    capacity_ = capacity;
  }
  void push_back(T value) { emplace_back(std::move(value)); }
  template <class... Arguments>
  T& emplace_back(Arguments&&... arguments) {
    if (size_ == capacity_) reserve(2 * capacity_);
    T* place = ::new (static_cast<void*>(data_ + size_)) T(std::forward<Arguments>(arguments)...);
    ++size_;
    return *place;
  }
  void resize(std::size_t count) {
    reserve(count);
    while (size_ < count) emplace_back();
    while (size_ > count) std::destroy_at(data_ + --size_);
  }
  void clear() noexcept {
    std::destroy(begin(), end());
    size_ = 0;
  }

  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }
  T* begin() noexcept { return data_; }
  T* end() noexcept { return data_ + size_; }
  const T* begin() const noexcept { return data_; }
  const T* end() const noexcept { return data_ + size_; }
  T& operator[](std::size_t i) & noexcept { return data_[i]; }
  const T& operator[](std::size_t i) const& noexcept { return data_[i]; }
  // An element of a temporary is an rvalue, so that an operator may take over its memory.
  T&& operator[](std::size_t i) && noexcept { return std::move(data_[i]); }
  T& front() & noexcept { return data_[0]; }
  const T& front() const& noexcept { return data_[0]; }
  T&& front() && noexcept { return std::move(data_[0]); }
  T& back() & noexcept { return data_[size_ - 1]; }
  const T& back() const& noexcept { return data_[size_ - 1]; }
  T&& back() && noexcept { return std::move(data_[size_ - 1]); }

 private:
  bool on_heap() const noexcept { return data_ != in_place(); }
  T* in_place() const noexcept {
    return reinterpret_cast<T*>(const_cast<std::byte*>(in_place_));  // NOLINT: storage of ours
  }
  void free_heap() noexcept {
    if (on_heap()) std::allocator<T>().deallocate(data_, capacity_);
  }
  void release() noexcept {
    clear();
    free_heap();
    data_ = in_place();
    capacity_ = N;
  }
  // *this is empty and in place.
  void take(InlineVector& other) noexcept {
    if (other.on_heap()) {
      data_ = std::exchange(other.data_, other.in_place());
      capacity_ = std::exchange(other.capacity_, N);
      size_ = std::exchange(other.size_, 0);
    } else {
      std::uninitialized_move(other.begin(), other.end(), data_);
      size_ = other.size_;
      other.clear();
    }
  }

  alignas(T) std::byte in_place_[N * sizeof(T)];
  T* data_ = in_place();
  std::size_t size_ = 0;
  std::size_t capacity_ = N;
};

}  // namespace ebb
