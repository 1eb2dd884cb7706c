#pragma once
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ebb/core/tensor/tensor.h"

namespace ebb {

struct NamedTensor {
  std::string name;  // full name, scopes joined by '.'
  Tensor tensor;
};

namespace detail {

struct NameHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view name) const noexcept {
    return std::hash<std::string_view>()(name);
  }
};

template <class T>
using ByName = std::unordered_map<std::string, T, NameHash, std::equal_to<>>;

// Tensors in insertion order, found by name. The tensors of a scope are a separate list, updated
// when it is asked for.
class NamedTensors {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  const std::vector<NamedTensor>& all() const noexcept { return all_; }
  // Position of the named tensor in all(), or kNone.
  std::size_t position(std::string_view name) const noexcept;
  const Tensor* find(std::string_view name) const noexcept;

  // Some of the tensors, in their order.
  struct Part {
    std::vector<NamedTensor> tensors;
    std::vector<std::size_t> positions;  // of each tensor, in all()
    std::size_t seen = 0;                // size of all() at the last update
  };
  // Tensors whose names begin with `prefix`; the reference lives as long as this object. Threads
  // may ask at the same time, as long as none adds.
  const Part& part(std::string_view prefix);
  const std::vector<NamedTensor>& below(std::string_view prefix) {
    return prefix.empty() ? all_ : part(prefix).tensors;
  }

  // Adds all or none. Throws Error for a name that is taken.
  void add(std::vector<NamedTensor> tensors);
  // Removes all tensors after the first `count`.
  void shrink(std::size_t count) noexcept;

 private:
  std::vector<NamedTensor> all_;
  ByName<std::size_t> positions_;
  std::mutex parts_mutex_;
  ByName<Part> parts_;  // by prefix
};

}  // namespace detail
}  // namespace ebb
