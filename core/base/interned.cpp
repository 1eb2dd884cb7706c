#include "ebb/core/base/interned.h"

#include <mutex>
#include <unordered_set>

const char* ebb::detail::interned(const std::string& text) {
  static std::mutex& mutex = *new std::mutex;
  static auto& texts = *new std::unordered_set<std::string>;
  const std::lock_guard lock(mutex);
  return texts.insert(text).first->c_str();
}
