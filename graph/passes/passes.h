#pragma once
#include <functional>
#include <optional>

#include "ebb/core/memory/plan.h"
#include "ebb/graph/passes/draft.h"

namespace ebb {
struct FusedChain;  // core/kernels/fused.h
}

namespace ebb::detail {

struct Rows;

// The passes that make a Program, in order, one file each. Passes marked "improves" can be left
// out: results stay the same. (program.cpp leaves them out for sessions that say so.)

// Finds what the fetches need: nodes that run, nodes needed for their shape only, and in-place
// updates that made the values read. `effects` run as well. Throws Error for
// fetches of another graph.
Draft prune(const GraphState& graph, const Runtime& runtime, const Tensors& fetches,
            const char* what = "run", std::span<Node* const> effects = {});

// Applies shape rules again, with the fed shapes. Throws Error for an invalid feed and for a needed
// placeholder that is not fed, and the shape rules' errors.
void infer(Draft& draft, const FedShapes& shapes);

// Marks outputs in memory that this run updates in place.
std::vector<bool> written_outputs(const Draft& draft);

// Improves: finds nodes that change nothing with these shapes.
void simplify(Draft& draft);

// Improves: finds values that are one number throughout, and fills them with it.
void fold(Draft& draft);

// Improves: finds nodes that compute what an earlier node does. Returns whether there are such.
bool merge(Draft& draft);

// Gives every value a memory, and makes steps of the nodes that compute.
void resolve(Draft& draft);

// Improves: makes one step of pointwise steps whose results only the others read, and of the sum
// behind them as well. Returns whether there are such.
bool fuse(Draft& draft);

// The chain that a step of fuse() runs; null for any other step.
const FusedChain* chain_of(const Node& node) noexcept;

// Whether that chain ends in a sum.
bool ends_in_sum(const Node& node) noexcept;

// Makes the edges. A step waits for the producers of its inputs. An update waits for all reads of
// versions that it overwrites, and readers of a version for the update that made it. Stateful
// operators that update no input run in the order of the program.
void add_dependencies(Draft& draft);

// Orders steps as in the program, as far as the edges allow, or (improves) with each update of
// state as early as possible. With `by_products_late`, updates with what a forward step makes
// beside other values come last: before them, the step can still be repeated. Throws Error if the
// edges make a circle: a backward pass needs a version that another of its inputs has overwritten.
Schedule order(const Draft& draft, bool updates_early, bool by_products_late = false);

// Searches for the order that keeps the fewest bytes alive. Nothing if it finds none that keeps
// fewer than the schedule, which has its layout.
std::optional<Schedule> reorder(const Draft& draft, const Schedule& schedule);

// The question to a step's rules; `inputs` and `outputs` hold the shapes.
MemoryQuery query_of(const Draft& draft, const DraftStep& step, Specs& inputs, Specs& outputs);
std::size_t workspace_bytes(const Draft& draft, const DraftStep& step, const IndexSet& destroyed);

// Finds lifetimes in that order, workspace, and memory that outputs can take over or kernels can
// use up (`share`: improves), and assigns offsets in the arena.
void lay_out(const Draft& draft, Schedule& schedule, bool share);

// Makes the steps of a draft that has its shapes, by the passes before.
// Returns whether it merged any.
bool make_steps(Draft& draft, const Passes& passes);

// Schedules twice: as written, and with each update as early as possible. Keeps the schedule with
// fewer bytes.
Schedule best_schedule(const Draft& draft, const Passes& passes);

// Makes a draft and its schedule keep to a budget, in as little time as it can find: changes the
// order of steps or, if that does not suffice, repeats steps that compute values again, moves
// values and slots to the host, or cuts the draft into micro-batches. `whole` is the draft after
// infer(), and held_by() tells the bytes that a session's pool reserves for variables. Returns the
// number of micro-batches. If nothing keeps to the budget, the draft becomes the one with the
// fewest bytes.
std::int64_t fit_budget(const Draft& whole, const Rows& rows, Draft& draft, Schedule& schedule,
                        std::size_t budget,
                        const std::function<std::size_t(const Draft&)>& held_by);

// Bytes reserved by the variables of a session that runs this draft alone.
std::size_t variable_bytes(const Draft& draft);
// Bytes of slots that the steps read and write, which cross the link if slots are on the host.
std::size_t slot_traffic_bytes(const Draft& draft);

// The memory plan of a session that runs this schedule.
memory::Plan make_plan(const Draft& draft, const Schedule& schedule);

}  // namespace ebb::detail
