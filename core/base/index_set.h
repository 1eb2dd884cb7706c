#pragma once
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <stdexcept>
#include <vector>

// Sets of inputs or outputs: in an operator's definition, and in one application of it.
namespace ebb {

// Inputs or outputs in an operator's definition: constant data for any number of them. Positions
// below 32 are named one by one; from(k) has no upper end, so that every later input is in the set:
//
//   .takes_over = bit(0) | bit(1)               // the first two
//   .shape_only = from(1)                       // a loss, then any number of updates
//   .keeps = {kAll}                             // concat, stack: all inputs are alike
class Positions {
 public:
  constexpr Positions() = default;

  constexpr bool has(std::size_t i) const noexcept { return (bits_ >> (i < 63 ? i : 63) & 1) != 0; }
  constexpr bool empty() const noexcept { return bits_ == 0; }

  friend constexpr Positions operator|(Positions a, Positions b) {
    return Positions(a.bits_ | b.bits_);
  }
  friend constexpr Positions operator&(Positions a, Positions b) {
    return Positions(a.bits_ & b.bits_);
  }
  friend constexpr bool operator==(Positions, Positions) = default;

  friend consteval Positions bit(int i);
  friend consteval Positions from(int i);

 private:
  static constexpr int kNamed = 32;

  explicit constexpr Positions(std::uint64_t bits) : bits_(bits) {}
  static constexpr void require_named(int i, int last) {
    if (i < 0 || i > last) throw std::invalid_argument("a position is named below 32");
  }

  std::uint64_t bits_ = 0;  // bit 63 stands for position 63 and all after it
};

// Position i alone.
consteval Positions bit(int i) {
  Positions::require_named(i, Positions::kNamed - 1);
  return Positions(std::uint64_t{1} << i);
}
// Position i and all after it.
consteval Positions from(int i) {
  Positions::require_named(i, Positions::kNamed);
  return Positions(~std::uint64_t{0} << i);
}
inline constexpr Positions kAll = from(0);

// Inputs or outputs of one application: exact for any number of them, no heap for up to 64.
class IndexSet {
 public:
  IndexSet() = default;
  IndexSet(std::initializer_list<std::size_t> indices) {
    for (const std::size_t i : indices) insert(i);
  }
  IndexSet(const IndexSet& other) : first_(other.first_) {
    if (other.further_) further_ = std::make_unique<Words>(*other.further_);
  }
  IndexSet(IndexSet&& other) noexcept = default;
  IndexSet& operator=(IndexSet other) noexcept {
    first_ = other.first_;
    further_ = std::move(other.further_);
    return *this;
  }

  bool has(std::size_t i) const noexcept {
    if (i < 64) return (first_ >> i & 1) != 0;
    const std::size_t word = i / 64 - 1;
    return further_ && word < further_->size() && ((*further_)[word] >> i % 64 & 1) != 0;
  }
  void insert(std::size_t i) {
    const std::uint64_t mine = std::uint64_t{1} << i % 64;
    if (i < 64) {
      first_ |= mine;
      return;
    }
    if (!further_) further_ = std::make_unique<Words>();
    if (further_->size() < i / 64) further_->resize(i / 64);
    (*further_)[i / 64 - 1] |= mine;
  }
  bool empty() const noexcept { return first_ == 0 && !further_; }

 private:
  using Words = std::vector<std::uint64_t>;
  std::uint64_t first_ = 0;         // indices below 64
  std::unique_ptr<Words> further_;  // null: none from 64 on
};

}  // namespace ebb
