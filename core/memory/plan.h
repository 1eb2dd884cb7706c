#pragma once
#include <cstddef>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ebb/allocator/limit.h"
#include "ebb/allocator/statistics.h"
#include "ebb/core/base/call_site.h"

namespace ebb::memory {

struct PlanOptions {
  // Most bytes that the session's pool may reserve: variables, slots, feed slots and arena. A plan
  // that takes more is made to fit by whatever is estimated to take least time: another order of
  // its nodes, computing values again in place of keeping them or, on a GPU, moving them to the
  // host meanwhile, which change no result, or cutting the batch into micro-batches, whose sums
  // over rows are added up in another order.
  std::optional<Limit> budget = {};
  // Whether the plan keeps its steps and buffers, for describe() and write_graphviz().
  bool details = false;
};

// Work of nodes, estimated from their shapes.
struct Work {
  std::size_t products = 0;     // multiply-adds of matmul, dense, conv, lstm, gru and attention
  std::size_t moved_bytes = 0;  // read and written, by all operators
};

// Steps of a plan and the buffers of its arena, in the order in which they run.
struct PlanDetails {
  struct Buffer {
    std::size_t offset = 0, bytes = 0;  // in the arena
    std::size_t first = 0, last = 0;    // steps that it lives for, both included
    Category category = Category::temporary;
  };
  // A value that a step reads or writes: in a buffer, or of a parameter, a feed or a fetch.
  struct Operand {
    std::size_t buffer = kNowhere;
    std::string name;  // if in no buffer
  };
  struct Step {
    Tag tag;
    std::vector<const char*> chain = {};  // operators that run as this one step, if it is "fused"
    bool is_repeated = false;
    std::vector<Operand> reads, writes;
    std::size_t workspace = kNowhere;  // buffer
  };
  static constexpr std::size_t kNowhere = ~std::size_t{0};
  std::vector<Step> steps;
  std::vector<Buffer> buffers;
};

// Memory of a session that has run one set of fetches with one set of fed shapes, and nothing else.
// Known before anything runs; equals the measurement byte for byte.
struct Plan {
  std::size_t peak_bytes = 0;  // most allocated at once: the sum of the next four
  std::size_t parameter_bytes = 0;
  std::size_t optimizer_state_bytes = 0;  // and other slots
  std::size_t feed_bytes = 0;      // slots that feeds are copied to; 0 if feeds are read in place
  std::size_t arena_bytes = 0;     // all intermediate values, workspace included
  std::size_t reserved_bytes = 0;  // peak_bytes in whole pages
  std::size_t lower_bound_bytes = 0;  // peak_bytes with the most bytes alive at once in place of
                                      // the arena
  std::size_t naive_bytes = 0;        // peak_bytes if nothing shared memory
  std::size_t workspace_bytes = 0;    // the largest workspace, inside the arena
  ByCategory by_category{};           // of peak_bytes
  ByCategory arena_by_category{};     // of arena_bytes: at the moment with most bytes alive; the
                                      // rest, due to placement, is temporary
  std::size_t captured_bytes = 0;     // of tensors captured from the program, compiled steps'
                                      // parameters among them: the device's, not in peak_bytes
  std::uint64_t sent_bytes = 0;       // to other ranks in a run, by collectives
  std::uint64_t sent_messages = 0;    // likewise, one after the other, where the ranks are a ring
  std::size_t nodes = 0;              // nodes that run, the repeated ones included, and each one
                                      // of a chain that runs as one step
  Work work = {};                     // of one run, the extra work included
  // Choices made for a budget. Results are the same bit for bit, but for sums over rows of a step
  // in micro-batches.
  std::size_t unbudgeted_bytes = 0;   // reserved_bytes of the plan without a budget
  bool is_reordered = false;          // whether nodes run in an order that keeps fewer bytes alive
  std::size_t repeated_nodes = 0;     // nodes that run again, for values that were not kept
  std::size_t micro_batches = 1;      // parts of the batch, which run one after the other
  std::int64_t micro_batch_rows = 0;  // rows of the largest of them; 0: of an uncut step
  Work extra_work = {};               // of both
  std::size_t moved_values = 0;       // values copied to page-locked memory of the host and back
  std::size_t moved_bytes = 0;        // both ways, of these copies and of optimizer state there
  std::size_t host_state_bytes = 0;   // optimizer state kept in page-locked memory, where updates
                                      // read and write it; not in optimizer_state_bytes
  std::size_t page_locked_bytes = 0;  // of the host, which both take; not in peak_bytes
  // Whether variables are updated as early as possible, which frees each gradient after its use,
  // instead of in the program's order. Chosen if it takes fewer bytes.
  bool updates_early = false;
  std::string peak_node;  // node at which most bytes of the arena live: "matmul (model.cpp:12)"
  Tag peak_tag = {};      // of peak_node
  std::vector<Holder> arena_holders;  // owners of the buffers alive there, largest first, a few
  std::shared_ptr<const PlanDetails> details;  // if asked for (PlanOptions)

  // The steps in their order, with the bytes alive at each, and the buffers with their places.
  // Nodes that run again are marked. Throws Error for a plan without details.
  std::string describe(CallSite site = CallSite::here()) const;
  // The page described at Recording::write_html(), of this plan alone: each buffer in its place of
  // the arena over the steps that it lives for, and where the arena is above its bound. Throws
  // FileError; without details it has the figures alone.
  void write_html(const std::string& path) const;
  // The same as a graph for Graphviz: `dot -Tsvg plan.dot`. Steps are boxes in their order, filled
  // if they run again; values are edges with their buffers. Throws Error for a plan without
  // details, and FileError.
  void write_graphviz(const std::string& path, CallSite site = CallSite::here()) const;
};

// The figures in lines, for people; without a last line break.
std::ostream& operator<<(std::ostream& out, const Plan& plan);

}  // namespace ebb::memory
