#pragma once
#include <string>

#include "ebb/core/memory/plan.h"
#include "ebb/graph/passes/form.h"

namespace ebb::detail {

// The passes that make a Program, in their order. Each is one file here. Those marked "improves"
// can be left out: what is computed stays the same (program.cpp does so where a session has them
// off).

// What the fetches need: nodes that run, nodes of which only the shape is asked, updates in place
// that what is read was made by. Throws Error for fetches of another graph.
Form prune(const GraphState& graph, const Runtime& runtime, const Tensors& fetches,
           const char* what = "run");

// Shape rules once more, with the fed shapes. Throws Error for what cannot be fed, a placeholder
// that is needed and not fed, and what shape rules throw.
void infer(Form& form, const FedShapes& shapes);

// Improves: finds nodes that change nothing with these shapes.
void simplify(Form& form);

// Gives every value a memory and makes steps of the nodes that compute.
void resolve(Form& form);

// The edges: a step waits for what makes its inputs; an update waits for all reads of the versions
// it writes over, and what reads a version for the update that made it.
void connect(Form& form);

// The order of the program, as far as the edges let it, or (improves) with each update of state as
// soon as it can run. Throws Error where the edges make a circle: a backward pass needs a version
// that what it also needs has written over.
Schedule order(const Form& form, bool updates_early);

// Lifetimes in that order, workspace, and who can take whose memory over or use it up (`share`:
// improves).
void assign(const Form& form, Schedule& schedule, bool share);

// Offsets in the arena.
void place(Schedule& schedule);

// What a session will hold that runs this.
memory::Plan account(const Form& form, const Schedule& schedule);

// The form as text: a line for each step, with its values, versions and edges.
std::string describe(const Form& form);

}  // namespace ebb::detail
