#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <vector>

#include "ebb/core/base/error.h"
#include "ebb/core/base/log.h"
#include "ebb/core/kernels/device_kernel.h"
#include "ebb/core/kernels/functors/families.h"
#include "ebb/core/kernels/pointwise.h"
#include "ebb/core/kernels/tf32.h"
#include "ebb/kernels/cuda/loader/part.h"

namespace ebb::cuda {
namespace {

// Set before the first device exists; only a device's stream runs them.
constinit const KernelTable* kernels = nullptr;

constexpr const char* kFile = "libebb_cuda.so";

// The folder of the program or library that holds this code.
std::filesystem::path own_folder() {
  Dl_info info;
  if (::dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || !info.dli_fname)
    return {};
  std::error_code error;
  return std::filesystem::canonical(info.dli_fname, error).parent_path();
}

// The file that EBB_CUDA_PART names; empty where it is not set.
std::filesystem::path chosen() {
  const char* const file = std::getenv("EBB_CUDA_PART");
  return file ? file : "";
}

// Files to try, in this order: beside ebb's own code, as in a copied folder of programs; where a
// build has it; where an installation has it, seen from the library, from a program, or from a
// library in glibc-hwcaps; where this ebb was configured to be installed.
std::vector<std::filesystem::path> candidates() {
  std::vector<std::filesystem::path> found;
  if (const std::filesystem::path own = own_folder(); !own.empty())
    for (const char* folder : {".", "..", "../..", "ebb", "../lib/ebb", "../../ebb"})
      found.push_back((own / folder / kFile).lexically_normal());
  found.push_back(std::filesystem::path(EBB_CUDA_FOLDER) / kFile);
  return found;
}

// The loaded library, which is never closed: operators name its kernels as long as the process
// lives.
struct Loaded {
  const Part* part = nullptr;
  std::string problem;      // why there is none
  bool is_missing = false;  // not found, and nothing says there should be one
};

Loaded take_from(void* library, const std::filesystem::path& file) {
  const auto function =
      reinterpret_cast<ebb_cuda_part_function*>(::dlsym(library, "ebb_cuda_part"));  // NOLINT
  if (!function) return {nullptr, file.string() + " is no CUDA part of ebb"};
  const Part* const part = function();
  Dl_info info;  // the file that the loader found
  const bool is_found = ::dladdr(reinterpret_cast<const void*>(function), &info) != 0;
  if (std::strcmp(part->stamp, part_stamp()) != 0)
    return {nullptr, (is_found ? info.dli_fname : file.string()) +
                         " belongs to another build of ebb (" + part->stamp + "; this is " +
                         part_stamp() + ")"};
  part->look_for_tf32_at(ebb::detail::tf32_switch());
  part->warn_by(ebb::detail::log_warning);
  kernels = &part->kernels;
  return {part, {}};
}

Loaded load_from(const std::filesystem::path& file) {
  if (void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL))
    return take_from(library, file);
  return {nullptr, std::string("the CUDA part cannot be loaded: ") + ::dlerror()};
}

Loaded load() {
  std::error_code error;
  if (const std::filesystem::path file = chosen(); !file.empty()) {
    // As an absolute path: the loader looks for a bare name elsewhere.
    if (std::filesystem::exists(file, error)) return load_from(std::filesystem::absolute(file));
    return {nullptr, "EBB_CUDA_PART names " + file.string() + ", which is not there"};
  }
  for (const std::filesystem::path& file : candidates())
    if (std::filesystem::exists(file, error)) return load_from(file);
  // Looks along the run path of the program or library that holds this code, where
  // find_package(ebb) has put the installation.
  if (void* const library = ::dlopen(kFile, RTLD_NOW | RTLD_LOCAL))
    return take_from(library, kFile);
  return {nullptr,
          std::string("no CUDA part of ebb (") + kFile +
              ") beside the program or where ebb is installed: it is built where a CUDA toolkit is",
          true};
}

const Loaded& load_once() {
  static const Loaded& loaded = *new Loaded(load());
  return loaded;
}

}  // namespace

// Definitions of operators are constants, so they name functions that exist without the part. These
// forward to the part's functions.
#define EBB_FUNCTION(name, Result, Argument) \
  Result name(Argument argument) { return kernels->name(argument); }
#define EBB_INSTANCE(walk, Functor)                              \
  template <>                                                    \
  Status walk<functors::Functor>(const KernelContext& context) { \
    return kernels->walk##_##Functor(context);                   \
  }
#include "ebb/kernels/cuda/loader/kernels.inc"

Toolkit toolkit() noexcept {
  try {
    if (const Part* part = load_once().part) return part->toolkit();
  } catch (const std::exception&) {  // no memory for the names of files
  }
  return {};
}

}  // namespace ebb::cuda

namespace ebb::detail {

CudaDevice open_cuda(int number) {
  const cuda::Loaded& loaded = cuda::load_once();
  CudaDevice device;
  const std::string problem = loaded.part ? loaded.part->open(number, device) : loaded.problem;
  if (!problem.empty()) throw Error(message("cuda", problem, {}));  // Device::cuda adds the line
  log_debug(describe(loaded.part->toolkit()));
  return device;
}

int count_cuda() noexcept {
  const cuda::Toolkit here = cuda::toolkit();
  if (here.device_count > 0) return here.device_count;
  try {
    const cuda::Loaded& loaded = cuda::load_once();
    return loaded.is_missing || (loaded.part && here.driver_version == 0) ? 0 : -1;
  } catch (const std::exception&) {  // no memory for the names of files
    return 0;
  }
}

}  // namespace ebb::detail
