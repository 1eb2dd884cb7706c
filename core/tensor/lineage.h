#pragma once
#include "ebb/core/tensor/node.h"

namespace ebb::detail {

// Whose memory a value of a graph is in. Views and updates in place share their input's; every
// other output has memory of its own.
struct Root {
  Node* node = nullptr;
  std::uint32_t output = 0;
  friend bool operator==(const Root&, const Root&) = default;
};

inline Root root_of(Node& producer, std::uint32_t output) noexcept {
  return output == 0 && producer.root ? Root{producer.root, producer.root_output}
                                      : Root{&producer, output};
}
inline Root root_of(const Node::Source& source) noexcept {
  return root_of(*source.producer, source.output);
}

// The tensor that a source names: an update's result is its target.
inline Root target_of(const Node::Source& source) noexcept {
  Node& producer = *source.producer;
  return source.output == 0 && producer.target ? Root{producer.target, producer.target_output}
                                               : Root{&producer, source.output};
}

// State (a variable, a captured tensor, a placeholder) outlives a run. Updates of it are effects:
// they happen in a run only as ancestors of a fetch, and reading it makes none of them an ancestor.
// Updates of anything else are part of its value: who reads version k needs what made it.
inline bool is_state(const Root& root) noexcept { return root.node->op->is_source; }

// Whether a source names, itself or through views, a tensor that its graph has captured and that is
// no parameter or leaf: eager would give it a history with an update.
bool is_captured_constant(const Node::Source& source) noexcept;

// The updates in place of a root's memory in the order of the program; number k makes version k +
// 1, and version 0 is what the root itself wrote or, for state, found.
inline std::span<Node* const> updates_of(const Root& root) noexcept {
  const Node::Extra* extra = root.node->extra.get();
  if (!extra || root.output >= extra->updates.size()) return {};
  return extra->updates[root.output];
}
inline std::uint32_t newest_version(const Root& root) noexcept {
  return static_cast<std::uint32_t>(updates_of(root).size());
}
// The version of its root's memory that a node's output was made with.
std::uint32_t version_made(const Node& producer, std::uint32_t output) noexcept;

// The update without which a source has no value: that which made the version it reads of memory
// that is no state. Null: its producer is enough.
inline Node* needed_update(const Root& root, std::uint32_t version) noexcept {
  return version == 0 || is_state(root) ? nullptr : updates_of(root)[version - 1];
}

// Whether a gradient can flow from an application to what input i reads: both are floating, and the
// operator does not look at its shape alone. Whatever was computed under NoGrad is a constant.
bool carries_gradient(const Node& node, std::size_t i) noexcept;

// What a symbolic tensor names now.
Node::Source source_of(const Tensor& tensor);

// Where the gradient with respect to what a source reads flows: to its producer, unless an update
// in place came in between, whose operator then has the gradient. No producer where that update
// went through another view of the memory, so that no history tells how what is read came about.
Node::Source gradient_source(const Node::Source& source);

// Whether two values in one memory share some bytes, but not all: an update whose source overlaps
// its target like that would read what it has just written. And the text of the error.
inline bool overlap_in_part(std::size_t offset, std::size_t bytes, std::size_t other_offset,
                            std::size_t other_bytes) noexcept {
  const bool apart = offset + bytes <= other_offset || other_offset + other_bytes <= offset;
  return !apart && (offset != other_offset || bytes != other_bytes);
}
std::string overlaps_target();

// The text of the error for the case that an update went through another view.
std::string updated_through_another_view(const Spec& spec);

}  // namespace ebb::detail
