// Finds out which MPI's launcher has started this process, and loads the part for it.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

#include "ebb/core/base/error.h"
#include "ebb/kernels/mpi/part.h"

namespace ebb::mpi {
namespace {

struct Launcher {
  const char* variable;  // that it sets for every process
  const char* size;      // likewise: how many there are
  std::string mpi;
  std::string name;  // of the MPI's part and package
};

// In this order: PMIx, with which Slurm can start any MPI, is Open MPI's own, and PMI is MPICH's.
std::optional<Launcher> launcher() {
  for (const Launcher& each :
       {Launcher{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "Open MPI", "openmpi"},
        Launcher{"PMIX_RANK", "SLURM_STEP_NUM_TASKS", "Open MPI", "openmpi"},
        Launcher{"PMI_RANK", "PMI_SIZE", "MPICH", "mpich"}})
    if (std::getenv(each.variable) != nullptr) return each;
  return {};
}

void* load(const std::string& name) {
  Dl_info info;
  std::filesystem::path own;
  std::error_code error;
  if (::dladdr(reinterpret_cast<const void*>(&launcher), &info) != 0 && info.dli_fname)
    own = std::filesystem::canonical(info.dli_fname, error).parent_path();
  // Open MPI loads further libraries, which look for its symbols among those of the process.
  constexpr int kFlags = RTLD_NOW | RTLD_GLOBAL;
  for (const char* folder : {".", "..", "../..", "ebb", "../lib/ebb", "../../ebb"}) {
    const std::filesystem::path file = (own / folder / name).lexically_normal();
    if (!std::filesystem::exists(file, error)) continue;
    if (void* const library = ::dlopen(file.c_str(), kFlags)) return library;
    detail::refuse("World", std::string("the MPI part cannot be loaded: ") + ::dlerror(), {});
  }
  return ::dlopen(name.c_str(), kFlags);
}

}  // namespace
}  // namespace ebb::mpi

std::unique_ptr<ebb::detail::Transport> ebb::detail::connect() {
  const std::optional<mpi::Launcher> by = mpi::launcher();
  if (!by) {
    const char* const tasks = std::getenv("SLURM_STEP_NUM_TASKS");  // of which this is one
    if (!tasks || !std::getenv("SLURM_PROCID") || std::atoi(tasks) < 2) return nullptr;
    refuse("World",
           "srun has started several processes that do not know of one another; use srun "
           "--mpi=pmix, or pmi2 for MPICH",
           {});
  }
  const std::string file = "libebb_" + by->name + ".so";
  void* const library = mpi::load(file);
  if (library == nullptr)
    refuse("World",
           by->mpi + " has started this process, but ebb was built without " + by->mpi +
               "; install lib" + by->name + "-dev and build ebb again",
           {});
  const auto connect_by =
      reinterpret_cast<ebb_mpi_part_function*>(::dlsym(library, "ebb_mpi_part"));  // NOLINT
  std::string problem = file + " is no part of ebb";
  std::unique_ptr<Transport> job(connect_by ? connect_by(EBB_BUILD, problem) : nullptr);
  if (!job) refuse("World", problem, {});
  const char* const size = std::getenv(by->size);
  if (size != nullptr && job->size() < std::atoi(size))
    refuse("World",
           std::string("the launcher has started ") + size + " processes, of which " + by->mpi +
               " finds " + std::to_string(job->size()) +
               "; use its own mpirun, or srun --mpi=pmix or pmi2 as it needs",
           {});
  return job;
}
