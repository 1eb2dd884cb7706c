#pragma once
#include "ebb/core/tensor/node.h"

namespace ebb::detail {

// The owner of the memory in which a graph's value lives. Views and updates in place share their
// input's memory; every other output has its own.
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

// The tensor that a source names. An update's result is its target.
inline Root target_of(const Node::Source& source) noexcept {
  Node& producer = *source.producer;
  return source.output == 0 && producer.target ? Root{producer.target, producer.target_output}
                                               : Root{&producer, source.output};
}

// State (a variable, a captured tensor, a placeholder) outlives a run. Updates of it are effects:
// they happen in a run only as ancestors of a fetch, and reading state makes no update an ancestor.
// Updates of anything else are part of its value: a reader of version k needs the update that made
// it.
inline bool is_state(const Root& root) noexcept { return root.node->op->is_source; }

// Whether a source names, itself or through views, a tensor captured by its graph that is no
// parameter or leaf. In eager mode an update would give it a history.
bool is_captured_constant(const Node::Source& source) noexcept;

// The updates in place of a root's memory, in program order. Number k makes version k + 1. Version
// 0 is the root's own output or, for state, the value at the start of the run.
inline std::span<Node* const> updates_of(const Root& root) noexcept {
  const Node::Extra* extra = root.node->extra.get();
  if (!extra || root.output >= extra->updates.size()) return {};
  return extra->updates[root.output];
}
inline std::uint32_t newest_version(const Root& root) noexcept {
  return static_cast<std::uint32_t>(updates_of(root).size());
}
// The version of its root's memory that a node's output has.
std::uint32_t version_made(const Node& producer, std::uint32_t output) noexcept;

// The update that a source needs besides its producer: it made the version read, of memory that is
// no state. Null: the producer is enough.
inline Node* needed_update(const Root& root, std::uint32_t version) noexcept {
  return version == 0 || is_state(root) ? nullptr : updates_of(root)[version - 1];
}

// Whether a gradient can flow from an application to the source of input i: both are floating, and
// the operator reads more than the shape. Results under NoGrad are constants.
bool carries_gradient(const Node& node, std::size_t i) noexcept;

// The source that a symbolic tensor names now.
Node::Source source_of(const Tensor& tensor);

// The source at which the gradient for a given source arrives: its producer or, if an update in
// place came in between, that update. For state, whose updates are no history, it is the tensor
// itself. No producer if the update went through another view of the memory: then no history tells
// how the value came about.
Node::Source gradient_source(const Node::Source& source);

// Whether two values in one memory share some bytes, but not all. An update whose input overlaps
// its target like that would read bytes that it has just written. overlaps_target() is the text of
// the error.
inline bool overlap_in_part(std::size_t offset, std::size_t bytes, std::size_t other_offset,
                            std::size_t other_bytes) noexcept {
  const bool apart = offset + bytes <= other_offset || other_offset + other_bytes <= offset;
  return !apart && (offset != other_offset || bytes != other_bytes);
}
std::string overlaps_target();

// The error text for an update of a parameter of which ranks have shares.
std::string updates_shares();

// The error text for an update through another view.
std::string updated_through_another_view(const Spec& spec);

}  // namespace ebb::detail
