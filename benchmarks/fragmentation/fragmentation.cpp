// Fragmentation: how much an allocator holds for the same requests, compared with the most that was
// alive; whether that stays when the requests are repeated; and what it gives back while a few
// blocks live.
//
//   benchmark_fragmentation [--workload NAME...] [--json FILE]
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "ebb/benchmarks/fragmentation/allocators.h"
#include "ebb/benchmarks/fragmentation/workloads.h"

namespace {

using namespace ebb::benchmarks;

constexpr std::size_t kRepetitions = 4, kSurvivors = 10;

// Figures of one allocator on one workload. Plain data, since a child process sends it.
struct Figures {
  std::array<std::size_t, kRepetitions> peak{}, at_end{};  // bytes reserved, by repetition
  std::size_t before_release = 0, after_release = 0;       // with the survivors alive
};

// The workload's own need, whichever allocator serves it, in blocks rounded to 512 bytes as in
// ebb's figures.
struct Demand {
  std::size_t peak_bytes = 0;
  std::size_t peak_event = 0;            // first event that reaches the peak
  std::vector<std::uint32_t> survivors;  // an even choice of the blocks alive then
  std::size_t survivor_bytes = 0;
};

Demand demand_of(const Workload& workload) {
  Demand demand;
  std::vector<std::size_t> bytes(workload.blocks);
  std::size_t alive = 0;
  for (std::size_t i = 0; i < workload.events.size(); ++i) {
    const Event& event = workload.events[i];
    if (event.bytes == 0) {
      alive -= bytes[event.block];
      continue;
    }
    bytes[event.block] = (event.bytes + 511) / 512 * 512;
    alive += bytes[event.block];
    if (alive <= demand.peak_bytes) continue;
    demand.peak_bytes = alive;
    demand.peak_event = i;
  }
  std::vector<bool> lives(workload.blocks);
  for (std::size_t i = 0; i <= demand.peak_event; ++i) {
    lives[workload.events[i].block] = workload.events[i].bytes > 0;
  }
  std::vector<std::uint32_t> live;
  for (std::uint32_t i = 0; i < workload.blocks; ++i) {
    if (lives[i]) live.push_back(i);
  }
  for (std::size_t i = 0; i < kSurvivors; ++i) {
    demand.survivors.push_back(live[(2 * i + 1) * live.size() / (2 * kSurvivors)]);
    demand.survivor_bytes += bytes[demand.survivors.back()];
  }
  return demand;
}

template <class Allocator>
Figures measure(const Workload& workload, const Demand& demand) {
  PageVector<typename Allocator::Handle> handles(workload.blocks);
  PageVector<bool> lives(workload.blocks);
  Figures figures;
  Allocator allocator;
  const auto replay = [&](std::size_t events) {
    for (std::size_t i = 0; i < events; ++i) {
      const Event& event = workload.events[i];
      lives[event.block] = event.bytes > 0;
      if (event.bytes > 0) {
        handles[event.block] = allocator.allocate(event.bytes);
      } else {
        allocator.free(handles[event.block]);
      }
    }
  };
  for (std::size_t i = 0; i < kRepetitions; ++i) {
    allocator.start_repetition();
    replay(workload.events.size());
    figures.peak[i] = allocator.peak();
    figures.at_end[i] = allocator.reserved();
  }
  replay(demand.peak_event + 1);
  for (const std::uint32_t block : demand.survivors) lives[block] = false;
  for (std::uint32_t i = 0; i < workload.blocks; ++i) {
    if (lives[i]) allocator.free(handles[i]);
  }
  figures.before_release = allocator.reserved();
  allocator.release();
  figures.after_release = allocator.reserved();
  for (const std::uint32_t block : demand.survivors) allocator.free(handles[block]);
  return figures;
}

// Measures malloc in a process of its own, so that all resident memory is malloc's.
Figures measure_malloc(const Workload& workload, const Demand& demand) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) throw std::runtime_error("no pipe");
  ::malloc_trim(0);
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("no second process");
  if (child == 0) {
    ::prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);  // pages of 4 KiB, as all others count
    const Figures figures = measure<Malloc>(workload, demand);
    const bool is_written = ::write(ends[1], &figures, sizeof figures) == sizeof figures;
    ::_exit(is_written ? 0 : 1);
  }
  Figures figures;
  ::close(ends[1]);
  const bool is_read = ::read(ends[0], &figures, sizeof figures) == sizeof figures;
  ::close(ends[0]);
  ::waitpid(child, nullptr, 0);
  if (!is_read) throw std::runtime_error("the process that measures malloc failed");
  return figures;
}

bool is_constant(const Figures& figures) {
  return std::all_of(figures.peak.begin() + 1, figures.peak.end(),
                     [&](std::size_t bytes) { return bytes == figures.peak[1]; }) &&
         std::all_of(figures.at_end.begin() + 1, figures.at_end.end(),
                     [&](std::size_t bytes) { return bytes == figures.at_end[1]; });
}

std::size_t most(const Figures& figures) { return *std::ranges::max_element(figures.peak); }

double mib(std::size_t bytes) { return static_cast<double>(bytes) / static_cast<double>(kMiB); }

nlohmann::ordered_json json_of(const Figures& figures) {
  return {{"peak", figures.peak},
          {"at_end", figures.at_end},
          {"constant", is_constant(figures)},
          {"before_release", figures.before_release},
          {"after_release", figures.after_release}};
}

nlohmann::ordered_json run(const Workload& workload) {
  const Demand demand = demand_of(workload);
  const Figures by_malloc = measure_malloc(workload, demand);
  const Figures ebb = measure<Ebb>(workload, demand);
  const Figures best_fit = measure<BestFit>(workload, demand);
  const auto ratio = [&](const Figures& figures) {
    return static_cast<double>(most(figures)) / static_cast<double>(demand.peak_bytes);
  };
  const double beside_best = ratio(ebb) / std::min(ratio(best_fit), ratio(by_malloc));
  std::printf("%-15s%5.0f", workload.name.c_str(), mib(demand.peak_bytes));
  for (const Figures* figures : {&ebb, &best_fit, &by_malloc}) {
    std::printf("%6.0f%5.2f", mib(most(*figures)), ratio(*figures));
  }
  std::printf("%6.2f%5s%6.0f%5.0f%6.0f\n", beside_best, is_constant(ebb) ? "yes" : "no",
              mib(demand.survivor_bytes), mib(ebb.after_release), mib(by_malloc.after_release));
  std::fflush(stdout);
  return {{"workload", workload.name},
          {"what", workload.what},
          {"allocated_peak", demand.peak_bytes},
          {"survivors", demand.survivor_bytes},
          {"ebb", json_of(ebb)},
          {"best_fit", json_of(best_fit)},
          {"malloc", json_of(by_malloc)},
          {"ebb_beside_best", beside_best}};
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What allocators hold for the same requests.");
  const std::vector<Workload> all = all_workloads();
  std::vector<std::string> names, chosen;
  std::string json;
  for (const Workload& workload : all) names.push_back(workload.name);
  app.add_option("--workload", chosen, "some of them alone")->check(CLI::IsMember(names));
  app.add_option("--json", json, "file for the figures");
  CLI11_PARSE(app, argc, argv);

  std::printf("%20s%11s%11s%11s%6s%5s%17s\n", "alive", "ebb", "best fit", "glibc", "ebb/", "",
              "released");
  std::printf("%-15s%5s%6s%5s%6s%5s%6s%5s%6s%5s%6s%5s%6s\n", "MiB", "most", "held", "x", "held",
              "x", "held", "x", "best", "flat", "alive", "ebb", "glibc");
  nlohmann::ordered_json figures = nlohmann::ordered_json::array();
  for (const Workload& workload : all) {
    if (chosen.empty() || std::find(chosen.begin(), chosen.end(), workload.name) != chosen.end()) {
      figures.push_back(run(workload));
    }
  }
  std::printf(
      "\nx: held beside what was alive at most. ebb/best: beside the lesser of the other two.\n"
      "Flat: what is held is constant from the second of %zu repetitions on. Released: all but\n"
      "%zu blocks of the fullest moment were freed, and the cache was released.\n",
      kRepetitions, kSurvivors);
  for (const Workload& workload : all) {
    std::printf("  %-16s%s\n", workload.name.c_str(), workload.what.c_str());
  }
  if (json.empty()) return 0;
  std::ofstream file(json);
  file << figures.dump(1) << '\n';
  file.close();
  if (file) return 0;
  std::fprintf(stderr, "benchmark_fragmentation: cannot write %s\n", json.c_str());
  return 1;
}
