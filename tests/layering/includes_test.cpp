#include "ebb/tests/layering/includes.h"

#include <map>

#include "ebb/tests/catch.h"
#include "ebb/tests/core/temporary_folder.h"

namespace ebb::tests {
namespace {

// The offences in a source tree of these files.
std::string offences_in(const std::map<std::string, std::string>& files) {
  const TemporaryFolder tree;
  for (const auto& [name, text] : files) tree.file(name, text);
  return layering_offences(tree.path(""));
}

TEST_CASE("includes follow the arrows of the design, and no file has forbidden text") {
  CHECK(layering_offences(EBB_SOURCE_DIR) == "");
}

TEST_CASE("the checker lets pass what the design allows") {
  const std::string offences = offences_in({
      {"ebb.h", "#include \"ebb/core/tensor/tensor.h\"\n#include \"ebb/eager/tape.h\"\n"},
      {"allocator/pool.h", "#include <vector>\n"},
      {"core/tensor/tensor.h",
       "#pragma once\n  #  include \"ebb/allocator/pool.h\"  // for Pool\n"},
      {"core/kernels/kernel.h", "[[no_unique_address]] F f;\n"},
      {"core/memory/json.cpp", "#include <nlohmann/json.hpp>\n#include <spdlog/spdlog.h>\n"},
      {"eager/tape.h", "#include \"ebb/core/tensor/tensor.h\"\n"},
      {"kernels/cpu/map.cpp", "#include <Eigen/Core>\n#include \"ebb/core/kernels/kernel.h\"\n"},
      {"kernels/cuda/map.cu",
       "#include <cuda_runtime.h>\n#include \"ebb/core/kernels/kernel.h\"\n"},
      {"examples/common/harness.cpp", "#include <CLI/CLI.hpp>\n#include \"ebb/ebb.h\"\n"},
  });
  CHECK(offences == "");
}

TEST_CASE("the checker names file and line of everything that the design forbids") {
  const std::string nothing;
  const std::string offences = offences_in({
      {"allocator/pool.h", "#include \"ebb/core/tensor/tensor.h\"\n"},
      {"allocator/cuda/source.h", nothing},
      {"core/autodiff/graph_too.h", "\n#include \"ebb/graph/graph.h\"\n"},
      {"core/files/json.h", "#include <nlohmann/json.hpp>\n"},
      {"core/base/up.h", "#include \"ebb/core/tensor/tensor.h\"\n"},
      {"core/roomless.cpp", "#include \"ebb/core/tensor/tensor.h\"\n"},
      {"core/tensor/tensor.h", "#include <cuda_runtime.h>\n#include <Eigen/Core>\n"},
      {"core/tensor/uses_cuda.cpp", "#include \"ebb/allocator/cuda/source.h\"\n"},
      {"core/data/umbrella.cpp", "#include \"ebb/ebb.h\"\n"},
      {"eager/tape.h", "#include \"ebb/graph/graph.h\"\n"},
      {"ebb.h", nothing},
      {"graph/graph.h",
       "#include \"tensor.h\"\n#include <ebb/core/tensor/tensor.h>\n#include "
       "\"ebb/core/gone.h\"\n"},
      {"kernels/cpu/map.cpp", "#include \"ebb/core/tensor/tensor.h\"\n"},
      {"kernels/cuda/map.h", "struct Map {\n  [[no_unique_address]] F f;\n};\n"},
      {"models/dense.cpp", "#include \"ebb/eager/tape.h\"\n#include <CLI/CLI.hpp>\n"},
      {"optim/adam.h", "#include <spdlog/spdlog.h>\n#include \"ebb/graph/graph.h\"\n"},
  });
  CHECK(offences ==
        "allocator/pool.h:1: allocator may not include core/tensor/tensor.h\n"
        "core/autodiff/graph_too.h:2: core/autodiff may not include graph/graph.h\n"
        "core/base/up.h:1: core/base may not include core/tensor/tensor.h\n"
        "core/data/umbrella.cpp:1: core/data may not include ebb.h\n"
        "core/files/json.h:1: core/files may not include nlohmann/json\n"
        "core/roomless.cpp:1: core may not include core/tensor/tensor.h\n"
        "core/tensor/tensor.h:1: core/tensor may not include CUDA\n"
        "core/tensor/tensor.h:2: core/tensor may not include Eigen\n"
        "core/tensor/uses_cuda.cpp:1: core/tensor may not include allocator/cuda/source.h\n"
        "eager/tape.h:1: eager may not include graph/graph.h\n"
        "graph/graph.h:1: write \"ebb/...\": includes do not depend on where they stand\n"
        "graph/graph.h:2: write \"ebb/core/tensor/tensor.h\", not <ebb/core/tensor/tensor.h>\n"
        "graph/graph.h:3: there is no core/gone.h\n"
        "kernels/cpu/map.cpp:1: kernels/cpu may not include core/tensor/tensor.h\n"
        "kernels/cuda/map.h:2: kernels/cuda/ may not have no_unique_address: nvcc then takes twice "
        "a kernel's size as "
        "parameters\n"
        "models/dense.cpp:1: models may not include eager/tape.h\n"
        "models/dense.cpp:2: models may not include CLI11\n"
        "optim/adam.h:1: a public header may not include spdlog\n"
        "optim/adam.h:2: optim may not include graph/graph.h\n");
}

}  // namespace
}  // namespace ebb::tests
