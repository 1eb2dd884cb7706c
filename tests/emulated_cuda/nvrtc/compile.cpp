// NVRTC by the host's compiler. The machine code is the name of a shared object.
#include <nvrtc.h>
#include <stdlib.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "ebb/tests/emulated_cuda/queues/machine.h"

struct _nvrtcProgram {
  std::string text, log, code;
};

namespace {

// Runs fused() as a thread of the emulated device. Such an object has indices of its own.
constexpr const char* kEnd = R"(
uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
static const ebb::emulated::Outside* outside;
void ebb_emulated_barrier(const char* file, int line) {
  outside->barrier(file, line);
  threadIdx = *outside->thread;
}
#pragma GCC visibility push(default)
extern "C" void ebb_emulated_run(const ebb::emulated::Outside* device, const void* arguments) {
  outside = device;
  threadIdx = *device->thread;
  blockIdx = *device->block;
  blockDim = *device->block_size;
  gridDim = *device->grid_size;
  fused(*static_cast<const ebb::cuda::FusedArguments*>(arguments));
}
extern "C" {
extern const std::size_t ebb_emulated_bytes = sizeof(ebb::cuda::FusedArguments);
}
)";

// A folder for files that are read once; removed when the process ends.
const std::filesystem::path& folder() {
  struct Folder {
    std::filesystem::path path;
    Folder() {
      std::string name = (std::filesystem::temp_directory_path() / "ebb_nvrtc_XXXXXX").string();
      if (::mkdtemp(name.data()) != nullptr) path = name;
    }
    ~Folder() {
      std::error_code error;
      if (!path.empty()) std::filesystem::remove_all(path, error);
    }
  };
  static const Folder folder;
  return folder.path;
}

// The file that holds the headers of all texts, compiled once for each process.
const std::string& prefix() {
  static const std::string file = [] {
    const std::string name = (folder() / "prefix.h").string();
    std::ofstream(name) << "#include \"ebb/kernels/cuda/fused_kernel.h\"\n"
                           "#include \"ebb/tests/emulated_cuda/outside.h\"\n";
    // Without it the texts compile as well, slower.
    static_cast<void>(std::system(
        (EBB_EMULATED_COMPILER " -x c++-header " + name + " -o " + name + ".gch").c_str()));
    return name;
  }();
  return file;
}

constexpr int kArchitectures[] = {75, 80, 86, 89, 90, 100};

nvrtcResult give(const std::string& text, char* to) {
  std::copy_n(text.c_str(), text.size() + 1, to);
  return NVRTC_SUCCESS;
}
nvrtcResult give_size(const std::string& text, size_t* bytes) {
  *bytes = text.size() + 1;
  return NVRTC_SUCCESS;
}

}  // namespace

nvrtcResult nvrtcVersion(int* major, int* minor) {
  *major = CUDART_VERSION / 1000;
  *minor = CUDART_VERSION % 1000 / 10;
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetNumSupportedArchs(int* count) {
  *count = static_cast<int>(std::size(kArchitectures));
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcGetSupportedArchs(int* architectures) {
  std::ranges::copy(kArchitectures, architectures);
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram* program, const char* text, const char*, int,
                               const char* const*, const char* const*) {
  if (!program || !text) return NVRTC_ERROR_INVALID_INPUT;
  *program = new _nvrtcProgram{std::string(text) + kEnd, {}, {}};
  return NVRTC_SUCCESS;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram* program) {
  delete *program;
  *program = nullptr;
  return NVRTC_SUCCESS;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int, const char* const*) {
  {
    auto lock = ebb::emulated::machine().lock();
    if (ebb::emulated::machine().injected(ebb::emulated::Fault::compile) != cudaSuccess) {
      program->log = "fused.cu(1): error: as a test wants it";
      return NVRTC_ERROR_COMPILATION;
    }
  }
  static int last = 0;  // its caller compiles one at a time
  const std::string object = (folder() / (std::to_string(++last) + ".so")).string(),
                    source = object + ".cu";
  std::ofstream(source) << program->text;
  const std::string command = EBB_EMULATED_COMPILER " -shared -nodefaultlibs -include " + prefix() +
                              " -x c++ " + source + " -o " + object + " -lm -lgcc -lc 2>&1";
  if (FILE* const answer = ::popen(command.c_str(), "r")) {
    char part[256];
    while (std::fgets(part, sizeof(part), answer)) program->log += part;
    if (::pclose(answer) == 0) program->code = object;
  }
  std::error_code error;
  std::filesystem::remove(source, error);
  return program->code.empty() ? NVRTC_ERROR_COMPILATION : NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t* bytes) {
  return give_size(program->code, bytes);
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char* code) { return give(program->code, code); }
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t* bytes) {
  return give_size(program->log, bytes);
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char* log) { return give(program->log, log); }
