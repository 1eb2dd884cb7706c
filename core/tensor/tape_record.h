#pragma once
#include "ebb/core/tensor/node.h"
#include "ebb/core/tensor/storage.h"

namespace ebb::detail {

// Memory that the tape holds for a gradient rule, at the version it had.
class Kept {
 public:
  Kept() = default;
  Kept(Ref<Storage> storage, std::size_t offset) noexcept
      : storage_(std::move(storage)), offset_(offset), version_(storage_->version()) {
    storage_->keep();
  }
  Kept(Kept&& other) noexcept = default;
  Kept& operator=(Kept&& other) noexcept {
    drop();
    storage_ = std::move(other.storage_);
    offset_ = other.offset_;
    version_ = other.version_;
    return *this;
  }
  ~Kept() { drop(); }

  explicit operator bool() const noexcept { return static_cast<bool>(storage_); }
  const Ref<Storage>& storage() const noexcept { return storage_; }
  std::size_t offset() const noexcept { return offset_; }
  bool is_current() const noexcept { return storage_->version() == version_; }
  std::uint32_t version() const noexcept { return version_; }
  void drop() noexcept {
    if (storage_) {
      storage_->unkeep();
      storage_ = nullptr;
    }
  }
  // Leaves the memory to its last reader: it counts as an activation until then.
  void leave() noexcept {
    storage_->leave();
    storage_ = nullptr;
  }

 private:
  Ref<Storage> storage_;
  std::size_t offset_ = 0;
  std::uint32_t version_ = 0;
};

// A record of the eager tape: an application that has run, with the memory that its gradient rule
// asked to keep. A record holds no other memory.
class TapeRecord final : public Node {
 public:
  struct Input {
    Input() = default;
    explicit Input(const Spec& of) noexcept : spec(of) {}
    Spec spec;
    Kept kept;
  };
  TapeRecord(const OpDef& what, const Attributes& how, CallSite where) noexcept
      : Node(what, how, where, next_number()) {}

  // Frees all that it holds, when a backward pass is done with it.
  void drop() noexcept;

  InlineVector<Input, 3> kept_inputs;   // by input
  InlineVector<Kept, 1> kept_outputs;   // by output
  InlineVector<Kept, 1> kept_captures;  // read by a recomputed function beside its inputs

  // Grows with every record and leaf made.
  static std::uint64_t next_number() noexcept;
};

// The record of a tape's node, which must not be a leaf.
inline TapeRecord& record_of(Node& node) noexcept { return static_cast<TapeRecord&>(node); }
inline const TapeRecord& record_of(const Node& node) noexcept {
  return static_cast<const TapeRecord&>(node);
}

}  // namespace ebb::detail
