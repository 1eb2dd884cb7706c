#include "ebb/core/memory/place_parts.h"

#include <array>
#include <set>

namespace ebb::memory::detail {

Groups::Groups(std::span<const Lifetime> buffers) : buffer_count_(buffers.size()) {
  for (const Lifetime& life : buffers) groups_.push_back({life});

  // Groups that are no parts, by what another has to match, then by number.
  struct Index : std::set<std::array<std::size_t, 3>> {
    std::size_t find(std::size_t a, std::size_t b) const {
      const auto found = lower_bound({a, b, 0});
      return found != end() && (*found)[0] == a && (*found)[1] == b ? (*found)[2] : kNone;
    }
  };
  Index by_life, by_first, by_end;
  const auto insert = [&](std::size_t g) {
    const Lifetime& life = groups_[g].life;
    by_life.insert({life.first, life.end, g});
    by_first.insert({life.first, life.bytes, g});
    by_end.insert({life.end, life.bytes, g});
  };
  const auto join = [&](std::size_t lower, std::size_t upper, bool in_time) {
    for (const std::size_t part : {lower, upper}) {
      const Lifetime& life = groups_[part].life;
      by_life.erase({life.first, life.end, part});
      by_first.erase({life.first, life.bytes, part});
      by_end.erase({life.end, life.bytes, part});
      groups_[part].is_part = true;
    }
    Lifetime life = groups_[lower].life;
    if (in_time)
      life.end = groups_[upper].life.end;
    else
      life.bytes += groups_[upper].life.bytes;
    groups_.push_back({life, lower, upper, in_time});
  };
  for (std::size_t g = 0; g < groups_.size(); ++g) {  // grows meanwhile
    const Lifetime life = groups_[g].life;
    insert(g);
    by_life.erase({life.first, life.end, g});
    const std::size_t twin = by_life.find(life.first, life.end);
    const std::size_t next = by_first.find(life.end, life.bytes);
    const std::size_t previous = by_end.find(life.first, life.bytes);
    if (next != kNone)
      join(g, next, true);
    else if (previous != kNone)
      join(previous, g, true);
    else if (twin != kNone)
      join(twin, g, false);
    else
      by_life.insert({life.first, life.end, g});
  }
  for (std::size_t g = 0; g < groups_.size(); ++g)
    if (!groups_[g].is_part) {
      roots_.push_back(g);
      lifetimes_.push_back(groups_[g].life);
    }
}

std::vector<std::size_t> Groups::offsets(std::span<const std::size_t> of_groups) const {
  std::vector<std::size_t> offsets(groups_.size());
  for (std::size_t r = 0; r < roots_.size(); ++r) offsets[roots_[r]] = of_groups[r];
  for (std::size_t g = groups_.size(); g-- > buffer_count_;) {  // groups before their parts
    const Group& group = groups_[g];
    offsets[group.lower] = offsets[g];
    offsets[group.upper] = offsets[g] + (group.in_time ? 0 : groups_[group.lower].life.bytes);
  }
  offsets.resize(buffer_count_);
  return offsets;
}

}  // namespace ebb::memory::detail
