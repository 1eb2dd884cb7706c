#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "ebb/core/memory/plan.h"
#include "ebb/core/tensor/storage.h"
#include "ebb/core/tensor/tape_mode.h"
#include "ebb/core/tensor/tensor.h"
#include "ebb/graph/graph.h"
#include "ebb/graph/graph_state.h"
#include "ebb/graph/passes.h"

namespace ebb::detail {

class SessionVariables;

// Location of a value while a program runs.
struct Location {
  enum Kind : std::uint8_t {
    nowhere,   // an output that nobody wants, or an input needed for its shape only
    arena,     // index: buffer
    variable,  // index: in the graph's variables
    captured,  // index: in Program::captured; offset: from the beginning of its storage
    feed,      // index: in Program::feeds
    fetch,     // index: in Program::fetches; written straight into the caller's tensor
    host,      // offset: in the program's page-locked memory
  };
  Kind kind = nowhere;
  std::uint32_t index = 0;
  std::size_t offset = 0;  // bytes
};

// A value that a step reads or writes.
struct LocatedValue {
  Location location;
  Spec spec;
};

// A node that runs.
struct Step {
  const Node* node = nullptr;
  const DeviceKernel* kernel = nullptr;
  std::uint32_t first_value = 0;  // into Program::values: inputs, then outputs
  std::uint32_t inputs = 0, outputs = 0;
  std::uint32_t workspace = ~std::uint32_t{0};  // buffer of the arena, if any
  std::size_t workspace_bytes = 0;
  IndexSet destroyed;        // inputs that the kernel may use up
  IndexSet unwanted;         // outputs that nobody reads
  bool is_repeated = false;  // computes values again that were not kept
};

// A piece of the arena, and the first and last step that need it.
struct ArenaLife {
  std::size_t offset = 0, bytes = 0;
  std::size_t first = 0, last = 0;
};

// A feed that is copied before the first step, and its destination.
struct FeedSlot {
  std::uint32_t feed = 0;
  Location to;
};

struct Fetch {
  Spec spec;
  // Location of its value after the last step; nowhere if a step writes it straight into the
  // fetched tensor.
  Location copied_from;
  memory::Tag tag = {};  // line of the fetched node
};

// Bytes of captured tensors, as allocated, those that share memory counted once.
std::size_t captured_bytes(std::span<const Node* const> captured, const memory::Profile& profile);

// A graph reduced to some fetches, with all shapes known, steps ordered and memory assigned. Plans
// describe it and sessions run it. Made by the passes of passes/.
struct Program {
  std::vector<const Node*> feeds;    // placeholders in the order in which they were given
  std::vector<FeedSlot> feed_slots;  // for devices that capture programs
  std::vector<Fetch> fetches;
  std::vector<const Node*> captured;            // one for each storage
  std::vector<std::uint32_t> updated_captured;  // into captured: updated in place
  std::vector<std::uint32_t> variables;         // touched by the program, ascending
  std::vector<Step> steps;
  std::vector<LocatedValue> values;
  std::vector<std::size_t> arena_offsets;  // by buffer
  std::vector<ArenaLife> arena_lives;      // sorted by last step
  std::vector<Ref<Node>> made;             // nodes made for this program
  bool slots_on_host = false;              // all of the session's, also if it touches none
  memory::Plan plan;
};

struct ProgramOptions {
  Passes passes = {};
  const char* what = "run";                // name of the call in messages
  bool details = false;                    // of the plan
  std::optional<std::size_t> budget = {};  // bytes reserved by the session's pool
  // The feeds, by number, whose leading axis is the batch that a budget may cut; nothing: those
  // with an open leading axis.
  std::optional<std::vector<std::size_t>> batch = {};
  bool least = false;  // makes the plan that takes the fewest bytes, budget or not
  // The variables of the session; null: of one that runs this program alone.
  const SessionVariables* variables = nullptr;
  std::span<Node* const> effects =
      {};  // updates and collectives that run though no fetch needs them
};

// Whether the calling thread looks for NaN (DetectNan). Its programs do not fuse, so that plans for
// such runs are others.
inline bool looks_for_nan() noexcept { return tape_mode().nan_check != NanCheck::none; }

// Whether a placeholder's leading axis is open, as a batch's is.
inline bool has_open_rows(const Shape& declared) noexcept {
  return declared.rank() > 0 && declared.dim(0) == kOpen;
}
// The shapes, with `rows` rows in each feed whose leading axis is open.
FedShapes with_rows(FedShapes shapes, std::int64_t rows);

// Throws Error for fetches or placeholders of another graph, for a placeholder not fed, and if
// in-place updates need each other in a circle, or if no plan keeps to the budget; and the shape
// rules' errors for the fed shapes.
Program make_program(const GraphState& graph, const Tensors& fetches, const FedShapes& shapes,
                     const Runtime& runtime, const ProgramOptions& options);

}  // namespace ebb::detail
