#include "ebb/tests/layering/symbols.h"

#include <array>
#include <cstdio>
#include <fstream>

#include "ebb/tests/catch.h"

namespace ebb::tests {
namespace {

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> buffer{};
  while (const size_t count = fread(buffer.data(), 1, buffer.size(), pipe))
    text.append(buffer.data(), count);
  REQUIRE(pclose(pipe) == 0);
  return text;
}

TEST_CASE(
    "no folder of the library takes a symbol from one that it may not know, but for core's seams") {
  // The build writes the library's objects, one a line; nm reads that list.
  const std::string nm_output =
      output_of(std::string("xargs -a '") + EBB_OBJECT_LIST + "' '" + EBB_NM + "' -C -A");
  const auto by_folder = read_symbols(nm_output, EBB_BINARY_DIR "/");
  REQUIRE(by_folder.at("allocator").defined.size() > 10);
  CHECK(symbol_offences(by_folder) == "");
}

TEST_CASE(
    "the reader of symbols sees a call that a declaration of one's own hides from the includes") {
  const std::string nm_output =
      "/b/CMakeFiles/ebb.dir/core/tensor/apply.cpp.o:0000000000000000 T ebb::apply(int)\n"
      "/b/CMakeFiles/ebb.dir/core/tensor/apply.cpp.o:                 U ebb::detail::run_now(int)\n"
      "/b/CMakeFiles/ebb.dir/core/tensor/apply.cpp.o:                 U ebb::eager_secret()\n"
      "/b/CMakeFiles/ebb.dir/core/tensor/apply.cpp.o:                 U void "
      "ebb::cpu::map<ebb::Tanh>(ebb::K const&)\n"
      "/b/CMakeFiles/ebb.dir/core/tensor/apply.cpp.o:                 U malloc\n"
      "/b/CMakeFiles/ebb.dir/eager/run_now.cpp.o:0000000000000000 T ebb::detail::run_now(int)\n"
      "/b/CMakeFiles/ebb.dir/eager/run_now.cpp.o:0000000000000010 T ebb::eager_secret()\n"
      "/b/CMakeFiles/ebb.dir/eager/run_now.cpp.o:                 U ebb::apply(int)\n"
      "/b/CMakeFiles/ebb.dir/graph/graph.cpp.o:                 U ebb::eager_secret()\n"
      "/b/CMakeFiles/ebb.dir/Unity/unity_core-ops-3_cxx.cxx.o:   U ebb::eager_secret()\n"
      "/b/CMakeFiles/k.dir/kernels/cpu/map.cpp.o:0000000000000000 W void "
      "ebb::cpu::map<ebb::Tanh>(ebb::K const&)\n"
      "/b/CMakeFiles/k.dir/kernels/cpu/map.cpp.o:                 U ebb::apply(int)\n";
  CHECK(
      symbol_offences(read_symbols(nm_output, "/b/")) ==
      "core/ops/3: core/ops may not call ebb::eager_secret(), which eager defines\n"
      "core/tensor/apply.cpp.o: core/tensor may not call ebb::eager_secret(), which eager defines\n"
      "graph/graph.cpp.o: graph may not call ebb::eager_secret(), which eager defines\n"
      "kernels/cpu/map.cpp.o: kernels/cpu may not call ebb::apply(int), which core/tensor "
      "defines\n");
}

}  // namespace
}  // namespace ebb::tests
