#include <cstdio>

#include "ebb/examples/common/measure.h"
#include "ebb/examples/common/run_program.h"

namespace examples {

using namespace ebb;

void train_and_report(const Options& options) {
  const auto problem = make_problem(options);
  std::printf("%s\n", problem->describe().c_str());
  memory::Comparison comparison(options.device);
  const Training training = measure(comparison, name(options.mode), *problem, options, true);
  if (const auto metric = training.epochs.back().metric) {
    std::printf("\nheld-out %s %.4f, %lld parameters, %.0f steps/s\n", problem->metric().c_str(),
                *metric, static_cast<long long>(training.parameters), training.steps_per_second);
    for (const Baseline& baseline : problem->baselines())
      std::printf("  beside %s: %.4f\n", baseline.name.c_str(), baseline.metric);
  }
  std::printf("\n");
  comparison.print();
  if (!options.json.empty())
    write_json(options.json, to_json(options, training, comparison.results().back()));
  require_fit(comparison);
}

}  // namespace examples
