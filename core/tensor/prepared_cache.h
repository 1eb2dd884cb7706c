#pragma once
#include <list>
#include <unordered_map>
#include <vector>

#include "ebb/core/tensor/kernel_of.h"

namespace ebb::detail {

// Results of kernels' prepare rules, the kMost that were used last. Some take a second to make. For
// one stream at a time.
class PreparedCache {
 public:
  static constexpr std::size_t kMost = 256;
  // Returns the result for this query, made now or found.
  Ref<Prepared> find_or_prepare(const Runtime& runtime, const OpDef& op, const DeviceKernel& kernel,
                                const MemoryQuery& query);

 private:
  using Key = std::vector<std::uint64_t>;  // all arguments of a prepare rule, as words
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  struct Entry {
    Key key;
    Ref<Prepared> prepared;
  };
  static Key key_of(const Runtime& runtime, const DeviceKernel& kernel, const MemoryQuery& query);

  std::list<Entry> entries_;  // most recently used first
  std::unordered_map<Key, std::list<Entry>::iterator, KeyHash> places_;
};

}  // namespace ebb::detail
