#include "ebb/examples/common/measure.h"

#include <fstream>

#include "ebb/core/device/runtime.h"
#include "ebb/core/memory/figures.h"
#include "ebb/core/memory/memory.h"

namespace examples {

using namespace ebb;
using Json = nlohmann::ordered_json;

Training measure(memory::Comparison& comparison, const std::string& name, const Problem& problem,
                 const Options& options, bool prints_epochs) {
  Training training;
  comparison.measure(name, [&](Device here, memory::Marks& mark) {
    const auto train = options.mode == Mode::graph ? train_as_graph : train_eagerly;
    if (here == options.device) {
      memory::reset_peaks(here);  // of which the progress line shows one
      Progress progress(name, prints_epochs);
      training = train(problem, options, here, mark, progress);
    } else {
      Progress silent;
      train(problem, options, here, mark, silent);
    }
  });
  return training;
}

void require_fit(const memory::Comparison& comparison) {
  const Device& device = comparison.device();
  if (!device.is_simulated()) return;
  for (const memory::Measurement& result : comparison.results())
    if (!result.fits)
      throw Error(result.name + " does not fit on " + device.name() + ", which has " +
                  memory::figure(device.runtime().capacity_bytes()));
}

namespace {
template <class Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

Json epochs_to_json(const Training& training) {
  Json epochs = Json::array();
  for (const Epoch& epoch : training.epochs)
    epochs.push_back({{"loss", or_null(epoch.loss)},
                      {"metric", or_null(epoch.metric)},
                      {"seconds", epoch.seconds}});
  return epochs;
}

Json memory_to_json(const Training& training, const memory::Measurement& measurement) {
  const memory::Footprint& measured = measurement.measured;
  Json by_category = Json::object();
  for (std::size_t i = 0; i < memory::kCategoryCount; ++i)
    by_category[memory::name(static_cast<memory::Category>(i))] = measured.by_category[i];
  Json json = {{"predicted_peak_bytes", measurement.predicted.peak_bytes},
               {"peak_bytes", measured.peak_bytes},
               {"held_between_steps_bytes", measured.held_between_steps_bytes},
               {"held_after_training_bytes", measured.at(kTrained)},
               {"after_close_bytes", measured.end_bytes},
               {"reserved_after_close_bytes", measured.reserved_end_bytes},
               {"reserved_after_release_bytes", measured.reserved_released_bytes},
               {"by_category", by_category}};
  if (training.session)
    json["session"] = {
        {"planned_peak_bytes", training.session->planned_peak_bytes},
        {"peak_bytes", training.session->peak_bytes},
        {"reserved_after_close_bytes", training.session->reserved_after_close_bytes}};
  return json;
}
}  // namespace

Json to_json(const Options& options, const Training& training,
             const memory::Measurement& measurement) {
  return {{"model", options.model},
          {"mode", name(options.mode)},
          {"device", options.device.name()},
          {"parameters", training.parameters},
          {"epochs", epochs_to_json(training)},
          {"steps_per_second", training.steps_per_second},
          {"memory", memory_to_json(training, measurement)}};
}

void write_json(const std::string& file, const Json& json) {
  std::ofstream out(file);
  out << json.dump(2) << "\n";
  out.close();
  if (!out) throw FileError(file + ": could not be written");
}

}  // namespace examples
