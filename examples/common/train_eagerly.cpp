#include "ebb/core/data/data_loader.h"
#include "ebb/eager/no_grad.h"
#include "ebb/examples/common/checkpoints.h"
#include "ebb/examples/common/epoch_log.h"
#include "ebb/examples/common/limit_scope.h"
#include "ebb/examples/common/training.h"
#include "ebb/examples/common/updates.h"

namespace examples {

using namespace ebb;

Training train_eagerly(const Problem& problem, const Options& options, const Device& here,
                       memory::Marks& mark, Progress& progress) {
  // A prediction is of what the program takes, whatever it may take.
  const LimitScope limit(here, here == options.device ? options.memory_limit : std::nullopt);
  Parameters params(here, Seed{options.seed});
  const Model model = problem.build(params);
  const Updates updates(options, problem.training().size());
  EpochLog log(problem, options, here, progress);
  mark(kBuilt);
  {
    const std::int64_t rows = options.micro_batch();
    DataLoader batches(problem.training(),
                       {.batch = rows, .shuffle = Seed{options.seed}, .device = here});
    DataLoader held_out(problem.held_out(), {.batch = rows, .device = here});
    const Checkpoints checkpoints(options, here);
    const std::int64_t before =
        checkpoints.resume(batches, [&](const std::string& file) { params.load(file, batches); });
    log.resume_behind(before);
    for (std::int64_t epoch = before; epoch < options.epochs; ++epoch) {
      log.begin_epoch();
      for (auto [x, y] : batches) {
        const Tensor loss = updates.minimize(problem.loss(model(x, Phase::training), y), params, y);
        mark.step(loss);
        log.step(mark, y.shape()[0]);
      }
      if (updates.leave_rest()) updates.flush(params);
      log.trained();
      const NoGrad no_grad;
      for (auto [x, y] : held_out) log.score(model(x, Phase::inference), y);
      mark(kEpoch);
      log.end_epoch();
      checkpoints.save([&](const std::string& file) { params.save(file, batches); });
    }
  }
  mark(kTrained);
  return log.finish(params.count());
}

}  // namespace examples
