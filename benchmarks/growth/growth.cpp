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
#include <utility>
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

// Returns the seconds of this thread's processor time since the last call, so that other programs
// do not count. Nothing here is large enough to be shared among threads.
class Lap {
 public:
  double operator()() {
    const double now = seconds();
    return now - std::exchange(start_, now);
  }

 private:
  static double seconds() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
  }
  double start_ = seconds();
};

using Row = std::vector<double>;  // seconds, by column

struct Series {
  std::string name, what;
  std::vector<std::string> columns;
  std::int64_t nodes;  // nodes of the program per unit of its size
  std::int64_t most;   // largest size
  std::function<Row(std::int64_t)> measure;
};

std::string numbered(const char* name, std::int64_t i) { return name + std::to_string(i); }

const Tensor& four() {
  static const Tensor value = Tensor::full({4}, 0.1);
  return value;
}

// Times the first run, which plans, and a warm one.
void first_and_warm(Row& row, Session& session, const Tensors& fetches, const Feeds& feeds) {
  Lap lap;
  session.run(fetches, feeds);
  row.push_back(lap());
  session.run(fetches, feeds);
  row.push_back(lap());
}

Row chain(std::int64_t n) {
  Row row;
  Lap lap;
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1});
  Tensor y = x;
  for (std::int64_t i = 0; i < n / 4; ++i) y = tanh(y);  // the gradient of each has three nodes
  row.push_back(lap());
  const Tensor dx = gradients(sum(y), {x})[0];
  row.push_back(lap());
  graph.plan({dx}, {{x, {4}}}, Device::cpu());
  row.push_back(lap());
  Session session(graph);
  first_and_warm(row, session, {dx}, {{x, four()}});
  return row;
}

// One tensor with n readers, so its gradient is a sum of n terms.
Row readers(std::int64_t n) {
  Row row;
  Lap lap;
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1});
  Tensor y = x;
  for (std::int64_t i = 0; i < n; ++i) y = y + x;
  row.push_back(lap());
  const Tensor dx = gradients(sum(y), {x})[0];
  row.push_back(lap());
  graph.plan({dx, y}, {{x, {4}}}, Device::cpu());
  row.push_back(lap());
  Session session(graph);
  first_and_warm(row, session, {dx, y}, {{x, four()}});
  return row;
}

// n versions of one variable, each of them read.
Row updates(std::int64_t n) {
  Row row;
  Lap lap;
  Graph graph;
  const Parameters parameters(graph);
  const Tensor w = parameters.declare("w", {4}, initializers::zeros());
  Tensor y = w * 0.5;
  for (std::int64_t i = 0; i < n; ++i) y = y + add_assign(w, y);
  row.push_back(lap());
  graph.plan({y}, {}, Device::cpu());
  row.push_back(lap());
  Session session(graph);
  session.initialize();
  first_and_warm(row, session, {y}, {});
  return row;
}

Row variables(std::int64_t n) {
  Row row;
  Lap lap;
  Graph graph;
  const Parameters parameters(graph, Seed{1});
  const Tensor x = graph.placeholder("x", DType::f32, {4});
  Tensor y = x;
  for (std::int64_t i = 0; i < n; ++i)
    y = y * parameters.declare(numbered("w", i), {4}, initializers::constant(0.9));
  row.push_back(lap());
  const Tensor loss = optim::Adam().minimize(sum(y), parameters);
  row.push_back(lap());
  graph.plan({loss}, {{x, {4}}}, Device::cpu());
  row.push_back(lap());
  Session session(graph);
  session.initialize();
  row.push_back(lap());
  first_and_warm(row, session, {loss}, {{x, four()}});
  return row;
}

Row placeholders(std::int64_t n) {
  Row row;
  Lap lap;
  Graph graph;
  Tensor y = graph.placeholder("x", DType::f32, {-1});
  Feeds feeds = {{y, four()}};
  for (std::int64_t i = 1; i < n; ++i) {
    feeds.push_back({graph.placeholder(numbered("x", i), DType::f32, {-1}), four()});
    y = y + feeds.back().placeholder;
  }
  row.push_back(lap());
  Session session(graph);
  first_and_warm(row, session, {y}, feeds);
  return row;
}

Row captures(std::int64_t n) {
  std::vector<Tensor> values;
  for (std::int64_t i = 0; i < n; ++i) values.push_back(Tensor::full({4}, 0.5));
  Row row;
  Lap lap;
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {4});
  Tensor y = x;
  for (const Tensor& value : values) y = y + value;
  row.push_back(lap());
  Session session(graph);
  first_and_warm(row, session, {y}, {{x, four()}});
  return row;
}

Row fetches(std::int64_t n) {
  Row row;
  Lap lap;
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {4});
  Tensors all;
  for (std::int64_t i = 0; i < n; ++i) all.push_back(x + static_cast<double>(i));
  row.push_back(lap());
  Session session(graph);
  first_and_warm(row, session, all, {{x, four()}});
  return row;
}

Row plans(std::int64_t n) {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {-1, 0});
  const Tensor y = x + 1;
  std::vector<Tensor> values;
  for (std::int64_t i = 1; i <= n; ++i) values.push_back(Tensor::zeros({i, 0}));
  Session session(graph, {.max_plans = static_cast<std::size_t>(n)});
  Row row;
  Lap lap;
  for (int round = 0; round < 2; ++round) {
    for (const Tensor& value : values) session.run(y, {{x, value}});
    row.push_back(lap());
  }
  return row;
}

Row sessions(std::int64_t n) {
  Graph graph;
  const Tensor x = graph.placeholder("x", DType::f32, {4});
  const Tensor y = tanh(x) * x;
  std::vector<Session> all;
  Row row;
  Lap lap;
  for (std::int64_t i = 0; i < n; ++i) all.emplace_back(graph);
  row.push_back(lap());
  for (int round = 0; round < 2; ++round) {
    for (Session& session : all) session.run(y, {{x, four()}});
    row.push_back(lap());
  }
  all.clear();
  row.push_back(lap());
  return row;
}

// Parameters with an optimizer each, in one eager step.
Row groups(std::int64_t n) {
  const Parameters parameters(Device::cpu().twin(), Seed{1});
  std::vector<optim::ParameterGroup> all;
  Tensor y = Tensor::full({1}, 1).to(parameters.device());
  for (std::int64_t i = 0; i < n; ++i) {
    all.push_back({parameters.scope(numbered("layer", i)), optim::Sgd()});
    y = y * all.back().parameters.declare("w", {1}, initializers::ones());
  }
  Lap lap;
  optim::minimize(sum(y), all);
  return {lap()};
}

// Scopes of one set of parameters, frozen one by one.
Row scopes(std::int64_t n) {
  const Parameters parameters(Device::cpu());
  std::vector<Parameters> all;
  for (std::int64_t i = 0; i < n; ++i) {
    all.push_back(parameters.scope(numbered("layer", i)));
    all.back().declare("w", {1}, initializers::zeros());
  }
  Lap lap;
  for (const Parameters& scope : all) scope.set_trainable(false);
  return {lap()};
}

// Rows taken from a table by number, and added to it.
Row indices(std::int64_t n) {
  const Tensor table = Tensor::zeros({n, 16}), numbers = randint(0, n, {n / 4});
  Row row;
  Lap lap;
  const Tensor taken = index_select(table, numbers);
  row.push_back(lap());
  index_add(table, numbers, taken);
  row.push_back(lap());
  return row;
}

std::vector<Series> all_series() {
  return {
      {"nodes",
       "a chain and its gradient; nodes in all",
       {"build", "gradient", "plan", "first", "warm"},
       1,
       1'048'576,
       chain},
      {"readers",
       "readers of one tensor, and its gradient",
       {"build", "gradient", "plan", "first", "warm"},
       3,
       262'144,
       readers},
      {"updates",
       "updates in place of one variable, each read",
       {"build", "plan", "first", "warm"},
       2,
       262'144,
       updates},
      {"variables",
       "variables, trained by Adam",
       {"build", "minimize", "plan", "initialize", "first", "warm"},
       8,
       65'536,
       variables},
      {"placeholders", "placeholders", {"build", "first", "warm"}, 2, 262'144, placeholders},
      {"captures", "captured tensors", {"build", "first", "warm"}, 2, 262'144, captures},
      {"fetches", "fetches", {"build", "first", "warm"}, 1, 262'144, fetches},
      {"plans", "plans kept by a session, each run", {"first", "warm"}, 64, 16'384, plans},
      {"sessions",
       "sessions of one graph, each run",
       {"open", "first", "warm", "close"},
       64,
       16'384,
       sessions},
      {"groups", "groups of parameters, in one eager step", {"step"}, 16, 65'536, groups},
      {"scopes", "scopes, frozen one by one", {"freeze"}, 16, 65'536, scopes},
      {"indices",
       "rows of a table, a quarter of them by number",
       {"take", "add"},
       4,
       262'144,
       indices},
  };
}

// The minimum of several measurements: two, or up to ten while they take less than a second.
Row least(const Series& series, std::int64_t n) {
  Row best(series.columns.size(), std::numeric_limits<double>::infinity());
  double spent = 0;
  for (int i = 0; i < 2 || (i < 10 && spent < 1); ++i) {
    Lap lap;
    const Row row = series.measure(n);
    spent += lap();
    for (std::size_t c = 0; c < row.size(); ++c) best[c] = std::min(best[c], row[c]);
  }
  return best;
}

// Slope of the least-squares line through (log size, log seconds), from row `first` on.
double exponent(const std::vector<std::int64_t>& sizes, const std::vector<Row>& rows,
                std::size_t column, std::size_t first) {
  double sx = 0, sy = 0, sxx = 0, sxy = 0;
  for (std::size_t i = first; i < sizes.size(); ++i) {
    const double x = std::log(static_cast<double>(sizes[i])), y = std::log(rows[i][column]);
    sx += x;
    sy += y;
    sxx += x * x;
    sxy += x * y;
  }
  const auto n = static_cast<double>(sizes.size() - first);
  return (n * sxy - sx * sy) / (n * sxx - sx * sx);
}

nlohmann::ordered_json run(const Series& series, std::int64_t most_nodes) {
  std::printf("%s\n%10s", series.what.c_str(), "");
  for (const std::string& column : series.columns) std::printf("%11s", column.c_str());
  std::printf("\n");
  std::vector<std::int64_t> sizes;
  const std::int64_t most = std::min(series.most, most_nodes / series.nodes);
  for (std::int64_t n = most; n >= 64 && sizes.size() < 5; n /= 4) sizes.insert(sizes.begin(), n);
  std::vector<Row> rows;
  nlohmann::ordered_json figures{{"series", series.name}, {"columns", series.columns}};
  for (const std::int64_t n : sizes) {
    rows.push_back(least(series, n));
    std::printf("%10lld", static_cast<long long>(n));
    for (const double seconds : rows.back()) std::printf("%8.2f ms", seconds * 1e3);
    std::printf("\n");
    std::fflush(stdout);
    figures["rows"].push_back({{"n", n}, {"seconds", rows.back()}});
  }
  if (sizes.size() > 1) {
    const auto say = [&](const char* words, const char* key, std::size_t first) {
      std::printf("%10s", words);
      for (std::size_t c = 0; c < series.columns.size(); ++c) {
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
