#pragma once
#include <concepts>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ebb/core/tensor/tensor.h"

namespace ebb {

namespace detail {
class NamedTensors;
}

// A tensor and its name, which auto& [name, tensor] unpacks.
class NamedTensor {
 public:
  NamedTensor(std::string full_name, Tensor value)
      : name(std::move(full_name)), tensor(std::move(value)) {}

  // The name below the handle that lists it, which scope[...] takes.
  std::string local() const { return name.substr(prefix_bytes_); }

  std::string name;  // full name, scopes joined by '.'
  Tensor tensor;

 private:
  friend class detail::NamedTensors;
  std::size_t prefix_bytes_ = 0;
};

template <std::size_t I, class Entry>
requires std::same_as<std::remove_cvref_t<Entry>, NamedTensor>
auto&& get(Entry&& entry) noexcept {
  if constexpr (I == 0)
    return std::forward<Entry>(entry).name;
  else
    return std::forward<Entry>(entry).tensor;
}

namespace detail {

struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const noexcept {
    return std::hash<std::string_view>()(name);
  }
};

template <class T>
using ByName = std::unordered_map<std::string, T, NameHash, std::equal_to<>>;

// Tensors in insertion order, found by name or by scope: a prefix that ends in a '.'.
class NamedTensors {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  const std::vector<NamedTensor>& all() const noexcept { return all_; }
  // Position of the named tensor in all(), or kNone.
  std::size_t position(std::string_view name) const noexcept;
  const Tensor* find(std::string_view name) const noexcept;

  // The tensors of a scope, in their order.
  struct Part {
    std::vector<std::size_t> positions;  // in all()
    std::vector<NamedTensor> tensors;    // copies of the first of them, until part() asks for all
  };
  // The reference lives as long as this object. Threads may ask at the same time, as long as none
  // adds.
  const Part& part(std::string_view prefix);
  const std::vector<NamedTensor>& below(std::string_view prefix) {
    return prefix.empty() ? all_ : part(prefix).tensors;
  }

  // Adds all or none. Throws Error for a name that is taken.
  void add(std::vector<NamedTensor> tensors);
  // Removes all tensors after the first `count`.
  void shrink(std::size_t count) noexcept;

 private:
  Part& part_of(std::string_view prefix);

  std::vector<NamedTensor> all_;
  ByName<std::size_t> positions_;
  std::mutex parts_mutex_;
  ByName<Part> parts_;  // by prefix
};

}  // namespace detail
}  // namespace ebb

template <>
struct std::tuple_size<ebb::NamedTensor> : std::integral_constant<std::size_t, 2> {};
template <std::size_t I>
struct std::tuple_element<I, ebb::NamedTensor> {
  using type = std::conditional_t<I == 0, std::string, ebb::Tensor>;
};
