// How long the page of a long run takes to write, and how large it is: ten thousand steps of a
// hundred events, which are all alike, or no two alike. `python3 tests/page/check.py --open
// FILE...` then tells how long a browser takes to draw it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/recording.h"

using namespace ebb;

namespace {

constexpr int kSteps = 10'000, kBlocks = 50;

void record(const std::string& file, bool are_alike) {
  const Device device = Device::simulated("h200", std::size_t{141} << 30);
  memory::CachingAllocator& allocator = device.runtime().allocator();
  memory::Recording recording(device);
  std::mt19937 random(7);
  std::uniform_int_distribution<std::size_t> kilobytes(1, 4096);
  recording.mark("built");
  const auto run_start = std::chrono::steady_clock::now();
  for (int step = 0; step < kSteps; ++step) {
    if (are_alike) random.seed(7);
    std::vector<memory::Block*> blocks;
    for (int i = 0; i < kBlocks; ++i)
      blocks.push_back(allocator.allocate({.bytes = kilobytes(random) << 10,
                                           .category = memory::Category::activation,
                                           .tag = {"operator", __FILE__, __LINE__}}));
    std::shuffle(blocks.begin(), blocks.end(), random);
    for (memory::Block* block : blocks) allocator.free(block);
    recording.step();
    if (step % 1000 == 999) recording.mark("after an epoch");
  }
  const auto start = std::chrono::steady_clock::now();
  recording.write_html(file);
  const auto end = std::chrono::steady_clock::now();
  std::printf("%-12s %9zu events in %.2f s, written in %.2f s, %.2f MB: %s\n",
              are_alike ? "all alike" : "none alike", recording.events().size(),
              std::chrono::duration<double>(start - run_start).count(),
              std::chrono::duration<double>(end - start).count(),
              static_cast<double>(std::filesystem::file_size(file)) / 1e6, file.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  std::string folder = ".";
  CLI::App app("Writes the pages of two long runs.");
  app.add_option("FOLDER", folder, "Where to");
  CLI11_PARSE(app, argc, argv);
  record(folder + "/alike.html", true);
  record(folder + "/unlike.html", false);
}
