// Purpose of a block of memory, and the operator and line that asked for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ebb::memory {

/// Every block is in exactly one category. The requester chooses it, and it may change while the
/// block lives.
enum class Category : std::uint8_t {
  parameter,
  gradient,
  optimizer_state,
  activation,
  input,
  workspace,
  temporary,
};

inline constexpr std::size_t kCategoryCount = 7;

constexpr const char* name(Category category) noexcept {
  constexpr const char* names[kCategoryCount] = {
      "parameter", "gradient", "optimizer_state", "activation", "input", "workspace", "temporary"};
  return names[static_cast<std::size_t>(category)];
}

/// Operator, user's source line and layer of the model that asked for a block. The strings are
/// never copied, so they must outlive every block: literals, operator definitions,
/// __builtin_FILE(), interned names.
struct Tag {
  const char* operator_name = "";
  const char* file = "";
  unsigned line = 0;
  const char* layer = "";  ///< scope of Parameters: "encoder.3.attention"; empty outside of models

  bool operator==(const Tag&) const = default;  ///< by address: copies of one text differ
};

}  // namespace ebb::memory
