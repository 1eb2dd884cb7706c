// Asks for more memory than there is, again and again, in pieces of many sizes, while a model
// trains. Each time it must end in OutOfMemory with every value kept, and the training must not
// notice. Meant for a process with a small limit: `under_limit.sh 256M benchmark_pressure`.
//
//   benchmark_pressure [--rounds N] [--at-most BYTES]
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "ebb/allocator/host_capacity.h"
#include "ebb/allocator/statistics.h"
#include "ebb/ebb.h"

namespace {

using namespace ebb;

std::size_t resident_bytes() {
  std::size_t pages = 0;
  if (std::FILE* file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*u %zu", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return pages * 4096;
}

// A model that trains a step at a time. Its losses depend on nothing outside it.
class Training {
 public:
  float step() {
    const Tensor loss = mean(square(out_(hidden_(x_)) - y_));
    return adam_.minimize(loss, parameters_).item<float>();
  }

 private:
  Parameters parameters_{Device::cpu(), Seed{7}};
  models::Dense hidden_{parameters_.scope("hidden"), 64, 256, Activation::relu};
  models::Dense out_{parameters_.scope("out"), 256, 1};
  optim::Adam adam_{{.learning_rate = 1e-3}};
  Tensor x_ = Tensor::full({128, 64}, 0.5), y_ = Tensor::full({128, 1}, 2);
};

// Fills the device with tensors of one size. Returns whether it ended in OutOfMemory before
// `at_most`.
bool fill(std::vector<Tensor>& held, std::int64_t floats, std::size_t at_most) {
  while (held.size() * static_cast<std::size_t>(floats) * 4 < at_most) {
    try {
      held.push_back(Tensor::full({floats}, static_cast<double>(held.size())));
    } catch (const OutOfMemory& error) {
      const memory::HostMemory host = memory::host_memory();
      std::printf("%6zu of %-10s%10s resident, %10s free, then: %.*s\n", held.size(),
                  memory::format_bytes(static_cast<std::size_t>(floats) * 4).c_str(),
                  memory::format_bytes(resident_bytes()).c_str(),
                  memory::format_bytes(std::min(host.free, host.addresses)).c_str(),
                  static_cast<int>(std::strcspn(error.what(), "\n")), error.what());
      return true;
    }
  }
  std::printf("%zu bytes were granted and nothing was refused\n", at_most);
  return false;
}

bool is_kept(const std::vector<Tensor>& held, std::int64_t floats) {
  for (std::size_t i = 0; i < held.size(); ++i) {
    for (const std::int64_t at : {std::int64_t{0}, floats / 2, floats - 1}) {
      if (held[i].item<float>({at}) != static_cast<float>(i)) return false;
    }
  }
  return true;
}

int run(int rounds, std::size_t at_most) {
  const memory::HostMemory host = memory::host_memory();
  std::printf("this process may have %s, of which %s are free\n",
              memory::format_bytes(host.total).c_str(),
              memory::format_bytes(std::min(host.free, host.addresses)).c_str());
  std::vector<float> losses;
  for (Training undisturbed; static_cast<int>(losses.size()) < 2 * rounds * 5;) {
    losses.push_back(undisturbed.step());
  }
  Training training;
  std::size_t steps = 0;
  const auto trains_on = [&] { return training.step() == losses.at(steps++); };
  for (int round = 0; round < rounds; ++round) {
    for (const std::int64_t kibibytes : {1024, 24 * 1024, 100, 7 * 1024, 300}) {
      std::vector<Tensor> held;
      const std::int64_t floats = kibibytes * 256;
      if (!fill(held, floats, at_most)) return 1;
      const std::size_t half = held.size() / 2;
      const bool kept = is_kept(held, floats);
      held.resize(half);
      if (!kept || !trains_on() || !fill(held, floats, at_most)) return 1;
      if (!is_kept(held, floats)) return 1;
      held.clear();
      if (!trains_on()) return 1;
    }
  }
  memory::release_cached(Device::cpu());
  std::printf("done: %zu steps trained as without pressure; %s resident\n", steps,
              memory::format_bytes(resident_bytes()).c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Asks for more memory than there is, and goes on.");
  int rounds = 2;
  std::string at_most = "2GiB";
  app.add_option("--rounds", rounds, "times that each size is tried")->check(CLI::PositiveNumber);
  app.add_option("--at-most", at_most, "stops there: nothing was refused, exit code 1");
  CLI11_PARSE(app, argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // output survives if the process is killed
  try {
    const int code = run(rounds, memory::parse_bytes(at_most));
    if (code != 0) std::fprintf(stderr, "benchmark_pressure: failed\n");
    return code;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "benchmark_pressure: %s\n", error.what());
    return 1;
  }
}
