#include "ebb/core/data/data_loader.h"
#include "ebb/examples/common/checkpoints.h"
#include "ebb/examples/common/epoch_log.h"
#include "ebb/examples/common/training.h"
#include "ebb/examples/common/updates.h"
#include "ebb/graph/session.h"

namespace examples {

using namespace ebb;

namespace {
// Batches of any size, of samples like these.
Shape batch_of(const Tensor& samples, std::int64_t rows) {
  Shape shape = samples.shape();
  shape.set(0, rows);
  return shape;
}
}  // namespace

Training train_as_graph(const Problem& problem, const Options& options, const Device& here,
                        memory::Marks& mark, Progress& progress) {
  const Tensor& inputs = problem.training().inputs();
  const Tensor& targets = problem.training().targets();
  Graph graph;
  const Tensor x = graph.placeholder("x", inputs.dtype(), batch_of(inputs, kOpen));
  const Tensor y = graph.placeholder("y", targets.dtype(), batch_of(targets, kOpen));
  Parameters params(graph, Seed{options.seed});
  const Model model = problem.build(params);
  const Tensor scores = model(x, Phase::inference);
  const Updates updates(options, problem.training().size());
  const Tensor train = updates.minimize(problem.loss(model(x, Phase::training), y), params, y);
  const Tensor rest = updates.leave_rest() ? updates.flush(params) : Tensor();

  SessionFigures figures;
  const std::int64_t rows = std::min(options.micro_batch(), problem.training().size());
  figures.planned_peak_bytes =
      graph.plan({train}, {{x, batch_of(inputs, rows)}, {y, batch_of(targets, rows)}}, here)
          .peak_bytes;

  // A prediction is of what the program takes, whatever it may take.
  Session session(graph,
                  {.device = here,
                   .memory_limit = here == options.device ? options.memory_limit : std::nullopt});
  session.initialize(params);
  PreparedStep step = session.prepare(train, {x, y});
  PreparedStep predict = session.prepare(scores, {x});
  EpochLog log(problem, options, here, progress);
  mark(kBuilt);
  {
    DataLoader batches(problem.training(),
                       {.batch = rows, .shuffle = Seed{options.seed}, .device = here});
    DataLoader held_out(problem.held_out(), {.batch = rows, .device = here});
    const Checkpoints checkpoints(options, here);
    const std::int64_t before = checkpoints.resume(
        batches, [&](const std::string& file) { session.restore(file, batches); });
    log.resume_behind(before);
    for (std::int64_t epoch = before; epoch < options.epochs; ++epoch) {
      log.begin_epoch();
      for (auto [bx, by] : batches) {
        const Tensor loss = step(bx, by);
        mark.step(loss);
        log.step(mark, by.shape()[0]);
      }
      if (rest.defined()) session.run(rest);
      log.trained();
      for (auto [bx, by] : held_out) log.score(predict(bx), by);
      mark(kEpoch);
      log.end_epoch();
      checkpoints.save([&](const std::string& file) { session.save(file, batches); });
    }
  }
  mark(kTrained);
  figures.peak_bytes = session.stats().allocated.peak;
  session.close();
  figures.reserved_after_close_bytes = session.stats().reserved.current;
  Training training = log.finish(params.count());
  training.session = figures;
  return training;
}

}  // namespace examples
