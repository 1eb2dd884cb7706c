// Dependency rules of the source tree, as data: folders, includes and symbols.
#pragma once

#include <array>
#include <string_view>
#include <vector>

namespace ebb::tests {

struct Room {
  std::string_view path;  // a folder; "" is the root. A file is in the longest that holds it
  std::vector<std::string_view>
      knows;               // prefixes of the files that it may include, beside its own folder's
  bool is_public = false;  // its headers are installed
};

// Headers that kernels may include. From core: pointers, shapes, attributes and how work is cut.
// From optim: the attributes of its operators.
inline const std::vector<std::string_view> kKernelFacing = {
    "core/kernels/",     "core/base/attributes.h", "core/base/dtype.h", "core/base/half.h",
    "core/base/shape.h", "core/device/backend.h",  "optim/kernels/"};

// Rooms of core, from the ground up. Each may include the rooms that it names, and none above it.
inline std::vector<Room> rooms_of_core() {
  return {
      {"core/base", {"allocator/"}, true},
      {"core/kernels", {"core/base/"}, true},
      {"core/device", {"core/kernels/", "core/base/", "allocator/"}, true},
      {"core/tensor",
       {"core/device/", "core/kernels/", "core/base/", "allocator/", "third_party/dlpack/"},
       true},
      {"core/random", {"core/tensor/", "core/kernels/", "core/base/"}, true},
      {"core/ops",
       {"core/random/", "core/tensor/", "core/device/", "core/kernels/", "core/base/"},
       true},
      {"core/autodiff",
       {"core/ops/", "core/random/", "core/tensor/", "core/kernels/", "core/base/"},
       true},
      {"core/files", {"core/base/"}, true},
      {"core/parameters",
       {"core/files/", "core/autodiff/", "core/ops/", "core/random/", "core/tensor/",
        "core/device/", "core/kernels/", "core/base/", "allocator/"},
       true},
      {"core/data",
       {"core/files/", "core/random/", "core/tensor/", "core/device/", "core/base/", "allocator/"},
       true},
      {"core/memory",
       {"core/files/", "core/random/", "core/tensor/", "core/device/", "core/base/", "allocator/"},
       true},
  };
}

inline std::vector<Room> rooms() {
  std::vector<std::string_view> for_cuda = kKernelFacing;
  for_cuda.insert(for_cuda.end(),
                  {"allocator/", "allocator/cuda/", "kernels/cuda/loader/", "kernels/cuda/plans/"});
  // The loader and the plans include no header of CUDA's.
  std::vector<std::string_view> for_cuda_loader = kKernelFacing, for_cuda_plans = kKernelFacing;
  for_cuda_loader.insert(for_cuda_loader.end(), {"core/base/"});
  for_cuda_plans.insert(for_cuda_plans.end(), {"allocator/", "kernels/cuda/dispatch.h"});
  const std::vector<std::string_view> all_public = {
      "allocator/", "core/", "eager/", "graph/", "optim/", "models/", "ebb.h", "custom_operator.h"};
  std::vector<std::string_view> at_the_root = all_public;  // kernels of users' functors
  at_the_root.push_back("kernels/cuda/custom.h");
  std::vector<std::string_view> everything = all_public;
  everything.insert(everything.end(), {"kernels/", "examples/", "tests/", "third_party/dlpack/"});
  std::vector<std::string_view> for_benchmarks = all_public;
  for_benchmarks.push_back("kernels/");
  std::vector<Room> all = rooms_of_core();
  const std::vector<Room> others = {
      {"allocator", {}, true},
      {"allocator/cuda", {"allocator/"}},
      {"core", {}, true},  // nothing stands beside the rooms
      {"eager", {"core/", "allocator/"}, true},
      {"graph", {"core/", "allocator/"}, true},
      {"optim", {"optim/kernels/", "core/", "allocator/"}, true},
      {"optim/kernels", {"core/kernels/", "core/base/"}, true},
      {"models", {"core/", "allocator/"}, true},
      {"kernels/cpu", kKernelFacing},
      {"kernels/mpi", {"core/device/transport.h", "core/kernels/", "core/base/"}},
      {"kernels/mpi/loader", {"kernels/mpi/part.h", "core/base/"}},
      {"kernels/cuda", for_cuda},
      {"kernels/cuda/loader", for_cuda_loader},
      {"kernels/cuda/plans", for_cuda_plans},
      {"", at_the_root, true},
      {"examples", all_public},
      {"benchmarks", for_benchmarks},
      {"tests", everything},
  };
  all.insert(all.end(), others.begin(), others.end());
  return all;
}

// A library that is not ebb's: the headers it is known by, and the only places that may include
// them.
struct Outsider {
  std::string_view name;
  std::vector<std::string_view> headers;  // prefixes
  std::vector<std::string_view> places;   // prefixes
  bool in_public_headers = false;
};

inline std::vector<Outsider> outsiders() {
  return {
      {"Eigen", {"Eigen/", "unsupported/Eigen/"}, {"kernels/cpu/"}},
      {"oneDNN", {"dnnl", "oneapi/"}, {"kernels/cpu/"}},
      {"MPI", {"mpi.h"}, {"kernels/mpi/part.cpp"}},
      {"CUDA",
       {"cuda", "cublas", "cudnn", "nccl", "nvrtc", "nvtx", "curand", "cusolver", "cusparse",
        "cub/", "thrust/", "cooperative_groups", "mma.h", "driver_types.h", "vector_types.h"},
       {"kernels/cuda/", "allocator/cuda/", "tests/emulated_cuda/", "tests/gpu_check/"}},
      {"spdlog", {"spdlog/", "fmt/"}, {""}},
      {"nlohmann/json",
       {"nlohmann/"},
       {"core/files/safetensors.cpp", "core/files/summary_writer.cpp", "core/memory/json.cpp",
        "examples/common/report.cpp", "benchmarks/", "tests/"}},
      {"CLI11", {"CLI/"}, {"examples/common/harness.cpp", "benchmarks/"}},
      {"libzip", {"zip.h"}, {"core/files/npz.cpp"}},
      {"protobuf",
       {"google/protobuf/", "onnx.pb.h", "tensorboard.pb.h"},
       {"core/files/summary_writer.cpp", "graph/onnx/write.cpp", "tests/"}},
      {"Catch2", {"catch2/"}, {"tests/catch.h", "tests/main.cpp"}},
      {"Google Benchmark", {"benchmark/"}, {"benchmarks/"}},
  };
}

// Text that sources below a folder may not contain.
struct Forbidden {
  std::string_view text;
  std::string_view folder;  // with its slash
  std::string_view reason;
};

inline constexpr std::array<Forbidden, 1> kForbidden = {{
    {"no_unique_address", "kernels/cuda/", "nvcc then takes twice a kernel's size as parameters"},
}};

// The seams by which core reaches up: core declares them, other folders define them. Recorder is
// one more, without a symbol: Graph derives from it and leaves nothing for the linker.
struct Seam {
  std::string_view symbol;            // start of the linker's name
  std::string_view defined_in;        // the folder
  std::string_view beside_core = {};  // another room that declares and calls them
};

inline constexpr std::array<Seam, 7> kSeams = {{
    {"ebb::detail::run_now(", "eager"},
    {"ebb::cpu::", "kernels", "optim"},
    {"ebb::cuda::", "kernels", "optim"},
    {"ebb::detail::make_cpu_backend(", "kernels"},
    {"ebb::detail::open_cuda(", "kernels"},
    {"ebb::detail::count_cuda(", "kernels"},
    {"ebb::detail::connect(", "kernels"},
}};

}  // namespace ebb::tests
