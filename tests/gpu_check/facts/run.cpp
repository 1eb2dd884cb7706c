#include "ebb/tests/gpu_check/facts/run.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "ebb/tests/gpu_check/facts/families.h"

namespace ebb::facts {
namespace {

constexpr struct {
  const char* name;
  Json (*ask)(Gpu& gpu);
} kFamilies[] = {{"device", device},
                 {"libraries", libraries},
                 {"addresses", addresses},
                 {"pages", pages},
                 {"floors", floors},
                 {"program", program},
                 {"relu_of_nan", relu_of_nan},
                 {"lstm_workspaces", lstm_workspaces},
                 {"sort_workspaces", sort_workspaces},
                 {"lstm_capture", lstm_capture},
                 {"products", products},
                 {"convolutions", convolutions},
                 {"attention", attention}};

// Writes the file whole or not at all.
void write(const std::string& file, const Json& told) {
  const std::string unfinished = file + ".new";
  std::ofstream(unfinished) << told.dump(1) << '\n';
  std::filesystem::rename(unfinished, file);
}

// The first problem met; "" if there was none.
std::string problem_in(const Json& told) {
  const Json flat = told.flatten();
  for (const auto& [path, value] : flat.items())
    if (path.ends_with("/problem")) return value.get<std::string>();
  return "";
}

bool tell(const std::string& file) {
  Gpu gpu;
  Json told;
  bool all = true;
  for (const auto& family : kFamilies) {
    const auto begin = std::chrono::steady_clock::now();
    const Json& row = told[family.name] = attempt([&] { return family.ask(gpu); });
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const std::string problem = problem_in(row);
    std::printf("%-16s %6.2f s  %s\n", family.name, seconds.count(), problem.c_str());
    std::fflush(stdout);
    all = all && problem.empty();
    write(file, told);
  }
  return all;
}

}  // namespace
}  // namespace ebb::facts

int ebb_gpu_facts(const char* file) {
  try {
    return ebb::facts::tell(file) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_facts: %s\n", error.what());
    return 1;
  }
}
