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

// Tensors in the order they came, found by name; those of a scope are a list of their own, brought
// up to date when it is asked for.
class NamedTensors {
 public:
  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  const std::vector<NamedTensor>& all() const noexcept { return all_; }
  // Where the tensor of that name is in all(), or kNone.
  std::size_t position(std::string_view name) const noexcept;
  const Tensor* find(std::string_view name) const noexcept;

  // Some of them, in their order.
  struct Part {
    std::vector<NamedTensor> tensors;
    std::vector<std::size_t> positions;  // of each, in all()
    std::size_t seen = 0;                // of all(), when it was brought up to date
  };
  // Those whose names begin with `prefix`; it lives as long as this does. Threads may ask at the
  // same time, while none adds.
  const Part& part(std::string_view prefix);
  const std::vector<NamedTensor>& below(std::string_view prefix) {
    return prefix.empty() ? all_ : part(prefix).tensors;
  }

  // All or nothing. Throws Error for a name that is there.
  void add(std::vector<NamedTensor> tensors);
  // Takes back what came after the first `count`.
  void shrink(std::size_t count) noexcept;

 private:
  std::vector<NamedTensor> all_;
  ByName<std::size_t> positions_;
  std::mutex parts_mutex_;
  ByName<Part> parts_;  // by prefix
};

}  // namespace detail
}  // namespace ebb
