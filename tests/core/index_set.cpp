#include "ebb/core/base/index_set.h"

#include <set>

#include "ebb/core/kernels/philox.h"
#include "ebb/tests/catch.h"

namespace ebb::tests {

TEST_CASE("Positions name inputs one by one, or all from one on", "[host]") {
  constexpr Positions some = bit(0) | bit(31), rest = from(2), but_one = bit(0) | from(2), none = {};
  for (std::size_t i = 0; i < 1000; ++i) {
    INFO(i);
    CHECK(some.has(i) == (i == 0 || i == 31));
    CHECK(rest.has(i) == (i >= 2));
    CHECK(but_one.has(i) == (i != 1));
    CHECK((but_one & from(5)).has(i) == (i >= 5));
    CHECK_FALSE(none.has(i));
  }
  CHECK(none.empty());
  CHECK((rest & bit(1)).empty());
  CHECK_FALSE(rest.empty());
}

TEST_CASE("An index set holds what was inserted and nothing else, however far", "[host]") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    IndexSet set;
    std::set<std::size_t> model;
    CHECK(set.empty());
    const std::uint64_t reach = seed % 2 == 0 ? 64 : 700;
    for (std::uint64_t n = 0; n < 20; ++n) {
      const std::size_t i = Philox::word(seed, 0, n) % reach;
      set.insert(i);
      model.insert(i);
      const IndexSet copy = set;
      const bool was_there = model.count(i + 1) > 0;
      set.insert(i + 1);
      model.insert(i + 1);
      CHECK(copy.has(i + 1) == was_there);
    }
    const IndexSet copy = set, moved = std::move(set);
    CHECK_FALSE(moved.empty());
    for (std::size_t i = 0; i < 1000; ++i) {
      CHECK(copy.has(i) == (model.count(i) > 0));
      CHECK(moved.has(i) == copy.has(i));
    }
  }
}

}  // namespace ebb::tests
