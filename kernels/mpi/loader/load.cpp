// Finds out which MPI's launcher has started this process, and loads the part for it.
#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "ebb/core/base/error.h"
#include "ebb/kernels/mpi/part.h"

namespace ebb::mpi {
namespace {

struct Launcher {
  const char* variable;  // that it sets for every process
  const char* size;      // likewise: how many there are
  const char* mpi;
  const char* file;
  const char* package;  // of Debian
};

// In this order: PMIx, with which Slurm can start any MPI, is Open MPI's own, and PMI is MPICH's.
constexpr Launcher kLaunchers[] = {
    {"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "Open MPI", "libebb_openmpi.so",
     "libopenmpi-dev"},
    {"PMIX_RANK", "SLURM_STEP_NUM_TASKS", "Open MPI", "libebb_openmpi.so", "libopenmpi-dev"},
    {"PMI_RANK", "PMI_SIZE", "MPICH", "libebb_mpich.so", "libmpich-dev"},
};

const Launcher* launcher() noexcept {
  for (const Launcher& each : kLaunchers)
    if (std::getenv(each.variable) != nullptr) return &each;
  return nullptr;
}

// Processes of the step that Slurm has started this one in; 1 without Slurm.
int tasks_of_slurm() noexcept {
  const char* const tasks = std::getenv("SLURM_STEP_NUM_TASKS");
  return tasks != nullptr && std::getenv("SLURM_PROCID") != nullptr ? std::atoi(tasks) : 1;
}

void* load(const char* name) {
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
    throw Error(
        detail::message("World", std::string("the MPI part cannot be loaded: ") + ::dlerror(), {}));
  }
  return ::dlopen(name, kFlags);
}

}  // namespace
}  // namespace ebb::mpi

std::unique_ptr<ebb::detail::Transport> ebb::detail::connect() {
  const mpi::Launcher* const by = mpi::launcher();
  if (by == nullptr) {
    if (mpi::tasks_of_slurm() < 2) return nullptr;
    throw Error(message("World",
                        "srun has started several processes that do not know of one another; use "
                        "srun --mpi=pmix, or pmi2 for MPICH",
                        {}));
  }
  void* const library = mpi::load(by->file);
  if (library == nullptr)
    throw Error(message("World",
                        std::string(by->mpi) +
                            " has started this process, but ebb was built without " + by->mpi +
                            "; install " + by->package + " and build ebb again",
                        {}));
  const auto connect_by =
      reinterpret_cast<ebb_mpi_part_function*>(::dlsym(library, "ebb_mpi_part"));  // NOLINT
  std::string problem;
  Transport* const job = connect_by ? connect_by(EBB_BUILD, problem) : nullptr;
  if (job == nullptr)
    throw Error(
        message("World", connect_by ? problem : std::string(by->file) + " is no part of ebb", {}));
  std::unique_ptr<Transport> connected(job);
  const char* const size = std::getenv(by->size);
  if (size != nullptr && connected->size() < std::atoi(size))
    throw Error(message("World",
                        std::string("the launcher has started ") + size + " processes, of which " +
                            by->mpi + " finds " + std::to_string(connected->size()) +
                            "; use its own mpirun, or srun --mpi=pmix or pmi2 as it needs",
                        {}));
  return connected;
}
