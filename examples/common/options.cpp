#include "ebb/examples/common/options.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <string_view>

namespace examples {

namespace {

namespace fs = std::filesystem;

struct Text {  // what is understood only after all arguments are known
  std::string model;
  std::string mode = "graph";
  std::string device = {};
  std::string accumulate = {};
};

std::int64_t parse_accumulate(const std::string& text) {
  if (text == "auto")
    throw BadArguments(
        "--accumulate auto comes with a later version of ebb; for now it takes a number");
  std::int64_t value = 0;
  if (!CLI::detail::lexical_cast(text, value) || value < 1)
    throw BadArguments("--accumulate takes a number of micro-batches, from 1, not '" + text + "'");
  return value;
}

void check_exists(std::string_view option, const std::string& file) {
  if (!fs::is_regular_file(file))
    throw BadArguments(std::string(option) + " " + file + ": there is no such file");
}

void check_data(const Options& options) {
  const std::size_t comma = options.data.find(',');
  if (options.model == "lstm" || comma == std::string::npos)
    return check_exists("--data", options.data);
  check_exists("--data", options.data.substr(0, comma));
  check_exists("--data", options.data.substr(comma + 1));
}

void check_json(const std::string& file) {
  if (file.empty()) return;
  const fs::path folder = fs::path(file).parent_path();
  if (!folder.empty() && !fs::is_directory(folder))
    throw BadArguments("--json " + file + ": there is no such folder");
  if (fs::is_directory(file)) throw BadArguments("--json " + file + ": that is a folder");
}

}  // namespace

Options defaults(const std::string& model) {
  Options options;
  options.model = model;
  const std::string folder = EBB_EXAMPLES_DATA;
  if (model == "lstm") {
    options.epochs = 12;
    options.hidden = 64;
    options.layers = 2;
    options.learning_rate = 2e-3;
    options.data = folder + "/sunspots.csv";
  } else {
    options.epochs = 40;
    options.batch = 32;
    options.hidden = 128;
    options.learning_rate = 3e-3;
    options.data = folder + "/digits.csv";
  }
  return options;
}

std::optional<Options> parse(int argc, const char* const* argv, const Program& program) {
  // The defaults depend on the model, which is among the arguments: it is looked for first.
  Text text{.model = program.model.empty() ? "lstm" : program.model};
  if (program.model.empty())
    for (int i = 1; i < argc; ++i) {
      const std::string_view argument = argv[i];
      if (argument.starts_with("--model=")) text.model = argument.substr(8);
      if (argument == "--model" && i + 1 < argc) text.model = argv[i + 1];
    }
  Options options = defaults(text.model);
  if (program.compares) options.accumulate = 4;
  text.accumulate = std::to_string(options.accumulate);

  CLI::App app(program.purpose, program.name);
  app.get_formatter()->column_width(30);
  const auto number = [&](const char* option, std::int64_t& value, const char* help) {
    app.add_option(option, value, help)
        ->check(CLI::PositiveNumber)
        ->capture_default_str()
        ->type_name("N");
  };
  if (program.model.empty())
    app.add_option("--model", text.model, "lstm (sunspots) or mlp (handwritten digits)")
        ->check(CLI::IsMember({"lstm", "mlp"}))
        ->capture_default_str()
        ->type_name("MODEL");
  if (!program.compares)
    app.add_option("--mode", text.mode, "graph (a session) or eager")
        ->check(CLI::IsMember({"graph", "eager"}))
        ->capture_default_str()
        ->type_name("MODE");
  app.add_option("--device", text.device, "cpu or sim:PROFILE:SIZE (sim:cpu:8GiB)")
      ->type_name("DEVICE");
  number("--epochs", options.epochs, "Passes over the training data");
  number("--batch", options.batch, "Samples that one update is made from");
  app.add_option("--accumulate", text.accumulate,
                 program.compares ? "Micro-batches a batch is cut into, in the second table"
                                  : "Micro-batches a batch is cut into")
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--memory-limit", options.memory_limit,
                 "What training may reserve above what is held, as in 64MiB")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("SIZE");
  number("--hidden", options.hidden, "Units of a hidden layer");
  number("--layers", options.layers, "Hidden layers");
  number("--length", options.length, "Values that the lstm sees before the one it forecasts");
  app.add_option("--seed", options.seed, "Of initial values and shuffles")
      ->capture_default_str()
      ->type_name("N");
  app.add_option("--data", options.data,
                 "A CSV whose last column is to be learned; for the mlp also MNIST's "
                 "IMAGES,LABELS")
      ->type_name("FILE");
  app.add_option("--json", options.json, "Write the figures there")->type_name("FILE");

  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    std::fputs(app.help().c_str(), stdout);
    return {};
  } catch (const CLI::ParseError& error) {
    throw BadArguments(error.what());
  }

  options.model = text.model;
  options.mode = text.mode == "eager" ? Mode::eager : Mode::graph;
  options.accumulate = parse_accumulate(text.accumulate);
  if (options.batch % options.accumulate != 0)
    throw BadArguments("--accumulate " + std::to_string(options.accumulate) +
                       " does not divide --batch " + std::to_string(options.batch));
  try {
    if (!text.device.empty()) options.device = ebb::Device::parse(text.device);
  } catch (const ebb::Error& error) {
    throw BadArguments(std::string("--device: ") + error.what());
  }
  check_data(options);
  check_json(options.json);
  return options;
}

}  // namespace examples
