// The cost laws: how build, gradient, plan and run grow with the size of a program. Each series
// multiplies one size by four and fits an exponent to each column. None may grow faster than n log
// n, which over these sizes is an exponent of about 1.1.
//
//   benchmark_growth [--most NODES] [--series NAME...] [--json FILE]
#include <malloc.h>
#include <time.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "ebb/core/ops/create.h"
#include "ebb/core/ops/index.h"
#include "ebb/core/ops/pointwise.h"
#include "ebb/core/ops/random.h"
#include "ebb/core/ops/reduce.h"
#include "ebb/core/ops/update.h"
#include "ebb/core/parameters/initializer.h"
#include "ebb/core/parameters/parameters.h"
#include "ebb/core/tensor/node.h"
#include "ebb/graph/session.h"
#include "ebb/optim/adam.h"
#include "ebb/optim/groups.h"
#include "ebb/optim/sgd.h"

namespace {

using namespace ebb;

// This thread's processor time, so that other programs do not count. Nothing here is large enough
// to be shared among threads.
double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// The laps of a measurement, by column.
class Laps {
 public:
  void restart() { start_ = processor_seconds(); }
  // Ends a lap and starts the next.
  void end(const char* column) {
    seconds.push_back(processor_seconds() - start_);
    columns.emplace_back(column);
    restart();
  }

  std::vector<std::string> columns;
  std::vector<double> seconds;

 private:
  double start_ = processor_seconds();
};

struct Series {
  std::string name, what;
  std::int64_t nodes;  // nodes of the program per unit of its size
  std::int64_t most;   // largest size
  std::function<Laps(std::int64_t)> measure;
};

std::string numbered(const char* name, std::int64_t i) { return name + std::to_string(i); }

const Tensor& four() {
  static const Tensor value = Tensor::full({4}, 0.1);
  return value;
}

// Times the first run, which plans, and a warm one.
void first_and_warm(Laps& laps, Session& session, const Tensors& fetches, const Feeds& feeds) {
  laps.restart();
  session.run(fetches, feeds);
  laps.end("first");
  session.run(fetches, feeds);
  laps.end("warm");
}

Laps chain(std::int64_t n) {
  Laps laps;
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1});
  Tensor y = x;
  for (std::int64_t i = 0; i < n / 4; ++i) y = tanh(y);  // the gradient of each has three nodes
  laps.end("build");
  const Tensor dx = gradients(sum(y), {x})[0];
  laps.end("gradient");
  graph.plan({dx}, {{x, {4}}}, Device::cpu());
  laps.end("plan");
  Session session(graph);
  first_and_warm(laps, session, {dx}, {{x, four()}});
  return laps;
}

// One tensor with n readers, so its gradient is a sum of n terms.
Laps readers(std::int64_t n) {
  Laps laps;
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1});
  Tensor y = x;
  for (std::int64_t i = 0; i < n; ++i) y = y + x;
  laps.end("build");
  const Tensor dx = gradients(sum(y), {x})[0];
  laps.end("gradient");
  graph.plan({dx, y}, {{x, {4}}}, Device::cpu());
  laps.end("plan");
  Session session(graph);
  first_and_warm(laps, session, {dx, y}, {{x, four()}});
  return laps;
}

// n versions of one variable, each of them read.
Laps updates(std::int64_t n) {
  Laps laps;
  Graph graph;
  const Parameters parameters(graph);
  const Tensor w = parameters.declare("w", {4}, initializers::zeros());
  Tensor y = w * 0.5;
  for (std::int64_t i = 0; i < n; ++i) y = y + add_assign(w, y);
  laps.end("build");
  graph.plan({y}, {}, Device::cpu());
  laps.end("plan");
  Session session(graph);
  session.initialize();
  first_and_warm(laps, session, {y}, {});
  return laps;
}

Laps variables(std::int64_t n) {
  Laps laps;
  Graph graph;
  const Parameters parameters(graph, Seed{1});
  const Tensor x = graph.placeholder("x", DType::f32, {4});
  Tensor y = x;
  for (std::int64_t i = 0; i < n; ++i)
    y = y * parameters.declare(numbered("w", i), {4}, initializers::constant(0.9));
  laps.end("build");
  const Tensor loss = optim::Adam().minimize(sum(y), parameters);
  laps.end("minimize");
  graph.plan({loss}, {{x, {4}}}, Device::cpu());
  laps.end("plan");
  Session session(graph);
  session.initialize();
  laps.end("initialize");
  first_and_warm(laps, session, {loss}, {{x, four()}});
  return laps;
}

Laps placeholders(std::int64_t n) {
  Laps laps;
  Graph graph;
  Tensor y = graph.placeholder("x", DType::f32, {-1});
  Feeds feeds = {{y, four()}};
  for (std::int64_t i = 1; i < n; ++i) {
    feeds.push_back({graph.placeholder(numbered("x", i), DType::f32, {-1}), four()});
    y = y + feeds.back().placeholder;
  }
  laps.end("build");
  Session session(graph);
  first_and_warm(laps, session, {y}, feeds);
  return laps;
}

Laps captures(std::int64_t n) {
  std::vector<Tensor> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(Tensor::full({4}, 0.5));
  Laps laps;
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {4});
  Tensor y = x;
  for (const Tensor& value : values) y = y + value;
  laps.end("build");
  Session session(graph);
  first_and_warm(laps, session, {y}, {{x, four()}});
  return laps;
}

Laps fetches(std::int64_t n) {
  Laps laps;
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {4});
  Tensors all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back(x + static_cast<double>(i));
  laps.end("build");
  Session session(graph);
  first_and_warm(laps, session, all, {{x, four()}});
  return laps;
}

Laps plans(std::int64_t n) {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 0});
  const Tensor y = x + 1;
  std::vector<Tensor> values;
  for (std::int64_t i = 1; i <= n; ++i) values.push_back(Tensor::zeros({i, 0}));
  Session session(graph, {.max_plans = static_cast<std::size_t>(n)});
  Laps laps;
  for (const char* round : {"first", "warm"}) {
    for (const Tensor& value : values) session.run(y, {{x, value}});
    laps.end(round);
  }
  return laps;
}

Laps sessions(std::int64_t n) {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {4});
  const Tensor y = tanh(x) * x;
  std::vector<Session> all;
  Laps laps;
  for (std::int64_t i = 0; i < n; ++i) all.emplace_back(graph);
  laps.end("open");
  for (const char* round : {"first", "warm"}) {
    for (Session& session : all) session.run(y, {{x, four()}});
    laps.end(round);
  }
  all.clear();
  laps.end("close");
  return laps;
}

// Parameters with an optimizer each, in one eager step.
Laps groups(std::int64_t n) {
  const Parameters parameters(Device::cpu().twin(), Seed{1});
  std::vector<optim::ParameterGroup> all;
  Tensor y = Tensor::full({1}, 1).to(parameters.device());
  for (std::int64_t i = 0; i < n; ++i) {
    all.push_back({parameters.scope(numbered("layer", i)), optim::Sgd()});
    y = y * all.back().parameters.declare("w", {1}, initializers::ones());
  }
  Laps laps;
  optim::minimize(sum(y), all);
  laps.end("step");
  return laps;
}

// Scopes of one set of parameters, frozen one by one.
Laps scopes(std::int64_t n) {
  const Parameters parameters(Device::cpu());
  std::vector<Parameters> all;
  for (std::int64_t i = 0; i < n; ++i) {
    all.push_back(parameters.scope(numbered("layer", i)));
    all.back().declare("w", {1}, initializers::zeros());
  }
  Laps laps;
  for (const Parameters& scope : all) scope.set_trainable(false);
  laps.end("freeze");
  return laps;
}

// Rows taken from a table by number, and added to it.
Laps indices(std::int64_t n) {
  const Tensor table = Tensor::zeros({n, 16}), numbers = randint(0, n, {n / 4});
  Laps laps;
  const Tensor taken = index_select(table, numbers);
  laps.end("take");
  index_add(table, numbers, taken);
  laps.end("add");
  return laps;
}

std::vector<Series> all_series() {
  return {
      {"nodes", "a chain and its gradient; nodes in all", 1, 1'048'576, chain},
      {"readers", "readers of one tensor, and its gradient", 3, 262'144, readers},
      {"updates", "updates in place of one variable, each read", 2, 262'144, updates},
      {"variables", "variables, trained by Adam", 8, 65'536, variables},
      {"placeholders", "placeholders", 2, 262'144, placeholders},
      {"captures", "captured tensors", 2, 262'144, captures},
      {"fetches", "fetches", 1, 262'144, fetches},
      {"plans", "plans kept by a session, each run", 64, 16'384, plans},
      {"sessions", "sessions of one graph, each run", 64, 16'384, sessions},
      {"groups", "groups of parameters, in one eager step", 16, 65'536, groups},
      {"scopes", "scopes, frozen one by one", 16, 65'536, scopes},
      {"indices", "rows of a table, a quarter of them by number", 4, 262'144, indices},
  };
}

// The minimum of several measurements: two, or up to ten while they take less than a second.
Laps least(const Series& series, std::int64_t n) {
  const double end = processor_seconds() + 1;
  Laps best = series.measure(n);
  for (int i = 1; i < 2 || (i < 10 && processor_seconds() < end); ++i) {
    const Laps laps = series.measure(n);
    for (std::size_t c = 0; c < laps.seconds.size(); ++c)
      best.seconds[c] = std::min(best.seconds[c], laps.seconds[c]);
  }
  return best;
}

// Slope of the least-squares line through (log size, log seconds), from row `first` on.
double exponent(const std::vector<std::int64_t>& sizes, const std::vector<Laps>& rows,
                std::size_t column, std::size_t first) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = first; i < sizes.size(); ++i) {
    const double x = std::log(static_cast<double>(sizes[i])), y = std::log(rows[i].seconds[column]);
    sx += x;
    sy += y;
    sxx += x * x;
    sxy += x * y;
  }
  const auto n = static_cast<double>(sizes.size() - first);
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

nlohmann::ordered_json run(const Series& series, std::int64_t most_nodes) {
  std::printf("%s\n", series.what.c_str());
  std::vector<std::int64_t> sizes;
  const std::int64_t most = std::min(series.most, most_nodes / series.nodes);
  for (std::int64_t n = most; n >= 64 && sizes.size() < 5; n /= 4) sizes.insert(sizes.begin(), n);
  std::vector<Laps> rows;
  nlohmann::ordered_json figures{{"series", series.name}};
  const auto head = [&] {
    std::printf("%10s", "");
    for (const std::string& column : rows[0].columns) std::printf("%11s", column.c_str());
    std::printf("\n");
    figures["columns"] = rows[0].columns;
  };
  for (const std::int64_t n : sizes) {
    rows.push_back(least(series, n));
    if (rows.size() == 1) head();
    std::printf("%10lld", static_cast<long long>(n));
    for (const double seconds : rows.back().seconds) std::printf("%8.2f ms", seconds * 1e3);
    std::printf("\n");
    std::fflush(stdout);
    figures["rows"].push_back({{"n", n}, {"seconds", rows.back().seconds}});
  }
  if (sizes.size() > 1) {
    const auto say = [&](const char* words, const char* key, std::size_t first) {
      std::printf("%10s", words);
      for (std::size_t c = 0; c < rows[0].columns.size(); ++c) {
        const double slope = exponent(sizes, rows, c, first);
        std::printf("%11.2f", slope);
        figures[key].push_back(slope);
      }
      std::printf("\n");
    };
    say("exponent", "exponents", 0);
    say("last step", "exponents_of_last_step", sizes.size() - 2);
  }
  std::printf("\n");
  return figures;
}

// Bytes that a node of a graph takes, including its list entry and malloc's overhead.
double bytes_a_node() {
  constexpr std::int64_t kNodes = 100'000;
  Graph graph;
  Tensor y = graph.placeholder("x", DType::f32, {-1});
  const std::size_t before = mallinfo2().uordblks;
  for (std::int64_t i = 0; i < kNodes; ++i) y = tanh(y);
  return static_cast<double>(mallinfo2().uordblks - before) / kNodes;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("How costs grow with the size of a program.");
  std::int64_t most = 1'048'576;
  std::vector<std::string> names, chosen;
  std::string json;
  const std::vector<Series> all = all_series();
  for (const Series& series : all) names.push_back(series.name);
  app.add_option("--most", most, "nodes of the largest programs")->check(CLI::PositiveNumber);
  app.add_option("--series", chosen, "some of them alone")->check(CLI::IsMember(names));
  app.add_option("--json", json, "file for the figures");
  CLI11_PARSE(app, argc, argv);

  // Keeps freed memory in the process. Otherwise the kernel takes its pages back and clears them
  // again, which costs more than all the rest and is not measured here.
  mallopt(M_MMAP_MAX, 0);
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
  mallopt(M_TOP_PAD, 1 << 28);
  const double bytes = bytes_a_node();
  std::printf("A node takes %.0f bytes beside its attributes (%zu); at most 350 are promised.\n\n",
              bytes - sizeof(Attributes), sizeof(Attributes));
  nlohmann::ordered_json figures{{"bytes_a_node", bytes}, {"attribute_bytes", sizeof(Attributes)}};
  for (const Series& series : all)
    if (chosen.empty() || std::find(chosen.begin(), chosen.end(), series.name) != chosen.end())
      figures["series"].push_back(run(series, most));
  std::printf("Processor time of all together. Exponent 1 is linear, n log n about 1.1.\n");
  if (json.empty()) return 0;
  std::ofstream file(json);
  file << figures.dump(1) << '\n';
  file.close();
  if (file) return 0;
  std::fprintf(stderr, "benchmark_growth: cannot write %s\n", json.c_str());
  return 1;
}
