#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace ebb::detail {

// Reference count of an object that Ref owns. Starts at zero; the first Ref makes it one.
class Counted {
 public:
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  void retain() const noexcept { references_.fetch_add(1, std::memory_order_relaxed); }
  // The first reference, of a new object: nobody else can be counting.
  void retain_new() const noexcept { references_.store(1, std::memory_order_relaxed); }
  // True when this was the last reference.
  bool release() const noexcept {
    // A sole owner needs no read-modify-write: nobody else can be counting.
    if (references_.load(std::memory_order_acquire) == 1) return true;
    return references_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  std::uint32_t references() const noexcept { return references_.load(std::memory_order_acquire); }
  bool unique() const noexcept { return references_.load(std::memory_order_acquire) == 1; }

 private:
  mutable std::atomic<std::uint32_t> references_{0};
};

// A counting pointer, one word wide. T derives from Counted. `destroy(T*)`, found by
// argument-dependent lookup, ends the object's life; the default deletes it.
template <class T>
void destroy(T* object) noexcept {
  delete object;
}

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT: implicit, as in every smart pointer
  explicit Ref(T* object) noexcept : object_(object) {
    if (object_) object_->retain();
  }
  Ref(const Ref& other) noexcept : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> Ref(Ref<U> other)
  noexcept : object_(other.detach()) {}  // NOLINT: implicit
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_ && object_->release()) destroy(object_);
  }

  // The first Ref of a new object.
  static Ref to_new(T* object) noexcept {
    object->retain_new();
    Ref ref;
    ref.object_ = object;
    return ref;
  }

  T* get() const noexcept { return object_; }
  T* operator->() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }
  // Releases ownership without counting down.
  T* detach() noexcept { return std::exchange(object_, nullptr); }

  friend bool operator==(const Ref& a, const Ref& b) noexcept { return a.object_ == b.object_; }

 private:
  T* object_ = nullptr;
};

template <class T, class... Arguments>
Ref<T> make_ref(Arguments&&... arguments) {
  return Ref<T>::to_new(new T(std::forward<Arguments>(arguments)...));
}

}  // namespace ebb::detail
