// The interface of an MPI part: a shared library of its own for each MPI that the build has found,
// since their binary interfaces differ. ebb loads the launcher's when a World is first asked for.
#pragma once
#include <string>

#include "ebb/core/device/transport.h"

extern "C" {
// The part's only exported function. Connects this process to its job; null: `problem` says why
// not. `build` tells one build of ebb from another.
using ebb_mpi_part_function = ebb::detail::Transport*(const char* build, std::string& problem);
}
