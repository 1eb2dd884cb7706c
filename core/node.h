#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "ebb/core/op_def.h"
#include "ebb/core/reference.h"
#include "ebb/core/storage.h"

namespace ebb {

class Node;
namespace detail {
// Ends a node's life without recursion, however long the chain below it.
void destroy(Node* node) noexcept;

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
  // Leaves the memory to the last that reads it: it counts as an activation until then.
  void leave() noexcept {
    storage_->leave();
    storage_ = nullptr;
  }

 private:
  Ref<Storage> storage_;
  std::size_t offset_ = 0;
  std::uint32_t version_ = 0;
};
}  // namespace detail

// An application of an operator: a record of the eager tape, or a node of a graph. Nodes refer to
// the nodes that made their inputs, never to tensors, so that there are no cycles and a record
// holds no memory but what its gradient rule keeps.
class Node final : public detail::Counted {
 public:
  struct Source {
    detail::Ref<Node> producer;  // null on the tape: a constant as far as gradients go
    std::uint32_t output = 0;    // which output of the producer
    Spec spec;
    detail::Kept kept;  // the tape only
  };
  struct Result {
    Spec spec;
    detail::Kept kept;  // the tape only
  };
  // What only leaves, graph inputs and recomputed regions have.
  struct Extra {
    std::string name;
    Tensor tensor;  // a leaf's gradient; a graph's captured tensor
    bool partial = false;  // a backward pass failed after it had added to this leaf's gradient
    std::function<Tensors()> recompute;
  };

  Node(const OpDef& op, const Attributes& attributes, CallSite site) noexcept
      : op(&op), attributes(attributes), site(site), number(next_number()) {}

  const OpDef* op;
  Attributes attributes;
  CallSite site;
  // Grows with every node made, so that inputs have smaller numbers than what uses them.
  const std::uint64_t number;
  InlineVector<Source, 3> inputs;
  InlineVector<Result, 1> outputs;
  std::unique_ptr<Extra> extra;
  memory::Category category = memory::Category::temporary;  // who asked: reverse mode, or not
  std::uint32_t region = 0;  // a graph's recompute region this node belongs to; 0: none
  bool released = false;     // a backward pass has freed this record

  // Frees what the tape holds here.
  void release_tape() noexcept;

 private:
  static std::uint64_t next_number() noexcept;
};

// The tape's operator of leaves: no inputs, one output, a gradient accumulates in extra->tensor.
extern const OpDef leaf_op;

}  // namespace ebb
